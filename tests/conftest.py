"""Shared places and small inputs."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REAL_DATA = Path(__file__).parents[2] / "shared" / "data"
SAMPLE = Path(__file__).parents[1] / "tasks" / "sources" / "sample" / "conversations.json"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real benchmark files; tests that need it skip where it is not beside the checkout."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"needs the real benchmark files in {REAL_DATA}")
    return REAL_DATA


@pytest.fixture(scope="session")
def locomo_file() -> Path:
    """The real LoCoMo release; tests that need it skip where it is not beside the checkout."""
    path = REAL_DATA / "locomo" / "locomo10.json"
    if not path.is_file():
        pytest.skip(f"needs the LoCoMo release at {path}")
    return path


def conversation(name: str = "c1", **changes: Any) -> dict[str, Any]:
    """One small conversation in LoCoMo's format: two sessions, four turns, three questions."""
    said = {
        "sample_id": name,
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I adopted a parrot yesterday."},
                {"speaker": "Bo", "dia_id": "D1:2", "text": "Lovely!", "blip_caption": "a green parrot"},
            ],
            "session_2_date_time": "9:05 am on 1 June, 2023",
            "session_2": [
                {"speaker": "Bo", "dia_id": "D2:1", "text": "How is the parrot?"},
                {"speaker": "Ada", "dia_id": "D2:2", "text": "He is called Kiwi."},
            ],
        },
        "qa": [
            {
                "question": "When did Ada adopt a parrot?",
                "answer": "7 May 2023",
                "evidence": ["D1:1"],
                "category": 2,
            },
            {
                "question": "Who is Kiwi?",
                "answer": "Ada's parrot",
                "evidence": ["D1:1", "D2:2"],
                "category": 1,
            },
            {
                "question": "What is Bo's dog called?",
                "adversarial_answer": "Kiwi",
                "evidence": ["D2:2"],
                "category": 5,
            },
        ],
    }
    return {**said, **changes}


def write_locomo(path: Path, *conversations: dict[str, Any]) -> Path:
    """A LoCoMo file of these conversations."""
    path.write_text(json.dumps(list(conversations) or [conversation()]), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One Prefect server for all tests that run a flow in this process."""
    from flows.server import configure

    configure(tmp_path_factory.mktemp("prefect"))
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=180):
        yield


@pytest.hookimpl(tryfirst=True)
@pytest.fixture
def shared_server(server: None, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment in which a child process uses this process's Prefect server."""
    from prefect.settings import PREFECT_API_URL

    return {**os.environ, "PREFECT_API_URL": str(PREFECT_API_URL.value())}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that need the server come last, those over real files before the others; a file stays in one process.

    The server's threads draw from `random`, which Hypothesis takes for flaky tests; its start is paid once a process.
    """
    served, real = (
        {item.path for item in items if fixture in getattr(item, "fixturenames", ())}
        for fixture in ("server", "locomo_file")
    )
    items.sort(key=lambda item: (item.path in served, item.path not in real))
