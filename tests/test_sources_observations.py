"""LoCoMo's own facts become records with the turns that the file names."""

from pathlib import Path
from typing import Any

import pytest

from storage.errors import InputError
from tasks.sources.locomo import load
from tests.conftest import conversation, write_locomo

OBSERVED = {
    "session_2_observation": {"Ada": [["Ada's parrot is called Kiwi.", "D2:2"]]},
    "session_1_observation": {
        "Bo": [["Bo is glad.", "D1:2"], ["Nobody said this.", "D9:9"]],
        "Ada": [["Ada adopted a green parrot.", ["D1:2", "D1:1"]], ["Ada is busy.", "D1:1, D1:2"]],
    },
    "session_7_observation": {"Ada": [["Ada is nowhere.", "D7:1"]]},
}


def _load(tmp_path: Path, **changes: Any) -> Any:
    return load(write_locomo(tmp_path / "data.json", conversation(**changes)))


def test_observations_are_records_in_the_order_of_their_sources(tmp_path: Path) -> None:
    read = _load(tmp_path, observation=OBSERVED)
    assert [(row.id, row.speaker, row.source_turn_ids, row.position) for row in read.observations] == [
        ("c1/S1.o1", "Bo", ("c1/D1:1", "c1/D1:2"), 0),
        ("c1/S1.o2", "Ada", ("c1/D1:1", "c1/D1:2"), 1),
        ("c1/S1.o3", "Ada", ("c1/D1:1", "c1/D1:2"), 2),
        ("c1/S1.o0", "Bo", ("c1/D1:2",), 3),
        ("c1/S2.o0", "Ada", ("c1/D2:2",), 4),
    ]
    dates = {turn.session_id: turn.said_at for turn in read.turns}
    assert all(row.said_at == dates[row.session_id] for row in read.observations)
    assert read.facts["observations"] == 5
    assert read.facts["observations given to their whole session, as they name no turn"] == ["c1/S1.o1"]
    assert len(read.facts["observations whose sources were repaired"]) == 2
    assert read.facts["observations of no session"] == ["c1/S7"]


def test_observations_are_part_of_the_datasets_address_and_their_absence_changes_nothing(tmp_path: Path) -> None:
    plain = _load(tmp_path)
    assert "observations" not in plain.facts
    address = plain.addresses.dataset
    assert _load(tmp_path, observation={}).addresses.dataset == address
    assert _load(tmp_path, observation=OBSERVED).addresses.dataset != address


@pytest.mark.parametrize("broken", [{"session_1_observation": {"Ada": [["no source"]]}}, {"session_1_observation": 3}])
def test_observations_of_another_form_are_refused_in_one_line(tmp_path: Path, broken: Any) -> None:
    with pytest.raises(InputError, match="conversation c1: LoCoMo's keys expected"):
        _ = _load(tmp_path, observation=broken).told


def test_the_release_has_2541_observations_of_which_five_are_repaired_and_none_lacks_a_turn(locomo_file: Path) -> None:
    read = load(locomo_file)
    assert len(read.observations) == 2541
    assert sum(len(row.source_turn_ids) > 1 for row in read.observations) == 15
    assert len(read.facts["observations whose sources were repaired"]) == 5
    assert read.facts["observations given to their whole session, as they name no turn"] == []
    sessions = {turn.id: turn.session_id for turn in read.turns}
    assert all(sessions[id] == row.session_id for row in read.observations for id in row.source_turn_ids)
