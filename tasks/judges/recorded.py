"""Which votes another project's judge recorded for its own answers, as a judge here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from storage.digests import tree_digest
from storage.records import Gold, Question
from tasks.asking import Asking
from tasks.audit import audit_files, recorded_votes
from tasks.judges.asked import Told
from tasks.judges.deciding import verdict
from tasks.outcomes import Verdict


@dataclass(frozen=True)
class Recorded:
    """The votes in the files of an audit folder (`tasks.audit`); it judges those files' answers and nothing else.

    `vote`: 0 takes all of an answer's votes as repeats (the score is their mean, the label the majority), 1, 2, …
    the vote of that number. An answer that the files do not hold is `failed`. Raises `InputError` for a folder
    without such files, `ValueError` for a negative vote.
    """

    name: ClassVar[str] = "recorded"
    title: ClassVar[str] = "votes that were recorded elsewhere (offline)"
    offline: ClassVar[bool] = True

    path: str
    vote: int = 0

    def __post_init__(self) -> None:
        if self.vote < 0:
            raise ValueError(f"vote must be 0 (all) or a vote's number, not {self.vote}")
        audit_files(self.path)

    def spec(self) -> dict[str, object]:
        """The digest of the files."""
        return {"votes": tree_digest((path.name, path) for path in audit_files(self.path))}

    def judge_many(
        self, items: Sequence[tuple[Question, Gold, str | None]], asking: Asking | None = None
    ) -> Iterator[Verdict | None]:
        votes = recorded_votes(self.path)
        for question, _, reply in items:
            cast = votes.get((question.id, reply or ""), ())
            chosen = cast[self.vote - 1 : self.vote] if self.vote else cast
            if chosen:
                yield verdict([Told("correct" if each else "wrong", "ok", None) for each in chosen])
            else:
                yield Verdict(None, None, "failed")
