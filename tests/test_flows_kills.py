"""Runs that are killed end in the same tables; a file of its own, so that another process runs the others meanwhile."""

from pathlib import Path

import pytest

from flows import protocol as protocols
from flows.stages import chosen
from storage.lake import Lake
from tests.soak import Endpoint, Soak, write_protocol


def test_runs_killed_at_seeded_moments_go_on_to_the_same_tables_and_pay_no_call_twice(
    tmp_path: Path, shared_server: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.benchmark import benchmark

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    until, endpoint = "sufficiency", Endpoint()
    with endpoint.served() as url:
        protocol = write_protocol(tmp_path / "soak.toml", url, conversations=["sample-1"])

        def finish(lake: Path) -> None:
            benchmark(protocols.load(str(protocol)), str(Lake.open(lake).root), chosen(None, until))

        environment = {**shared_server, "OPENAI_API_KEY": "none"}
        soak = Soak(tmp_path, protocol, endpoint, environment, options=["--until", until], finish=finish)
        for number in (2, 4, 5, 6, 7):
            soak.moment(number, 1)
