"""Which batches of requests are out at an endpoint, so that whoever comes next waits for them and sends none twice."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from storage.lake import Lake
from storage.places import read_whole, remove, write_whole
from storage.schemas import CALLS


@dataclass(frozen=True)
class Submission:
    """Requests that were handed to `endpoint` together, each as the columns of `CALLS` known beforehand.

    `name` goes with them to the endpoint. `batch`: the endpoint's name of them, None until it is known.
    """

    name: str

    endpoint: str
    calls: tuple[dict[str, Any], ...]
    batch: str | None = None

    @property
    def requests(self) -> list[str]:
        """The digests of the requests."""
        return [call["request"] for call in self.calls]


class Submissions:
    """The batches of a lake that have not come back."""

    def __init__(self, lake: Lake) -> None:
        self._folder = lake.root / CALLS.name / "batches"

    def out(self, endpoint: str, requests: Sequence[str]) -> list[Submission]:
        """The submissions to an endpoint that hold some of these requests."""
        wanted = set(requests)
        held = [_read(path) for path in sorted(self._folder.glob("*.json"))]
        return [item for item in held if item and item.endpoint == endpoint and wanted.intersection(item.requests)]

    def note(self, submission: Submission) -> None:
        """Keep a submission, before it is sent and again once its batch is known."""
        write_whole(self._path(submission), json.dumps(asdict(submission)).encode())

    def forget(self, submission: Submission) -> None:
        """The replies are in the ledger."""
        remove(self._path(submission))

    def _path(self, submission: Submission) -> Path:
        return self._folder / f"{submission.name}.json"


def _read(path: Path) -> Submission | None:
    try:
        said = json.loads(read_whole(path))
    except FileNotFoundError:
        return None
    return Submission(said["name"], said["endpoint"], tuple(said["calls"]), said["batch"])
