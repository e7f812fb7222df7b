"""How the replies of a judge that says right or wrong become one verdict."""

from collections.abc import Sequence
from statistics import fmean

from tasks.judges.asked import Ask, Told
from tasks.judges.replies import Words, label
from tasks.outcomes import Verdict
from tasks.prompts import Prompt

LABELS = ("correct", "wrong")


def decision(prompt: Prompt, known: Words, **offered: str) -> Ask[str]:
    """Asks for one of the two labels; the prompt may hold `{{right}}` and `{{wrong}}`, the judge's own words."""
    right, wrong = known["correct"][0], known["wrong"][0]
    return Ask(
        messages=prompt.fill(offered | {"right": right, "wrong": wrong}),
        prompt=prompt.digest,
        read=lambda text, cut: label(text, known, cut=cut),
        again=f"Reply with one word and nothing else: {right} or {wrong}.",
    )


def decided(correct: bool) -> Verdict:
    """A verdict that needed no model."""
    return Verdict(float(correct), "correct" if correct else "wrong", "ok")


def verdict(votes: Sequence[Told[str] | None]) -> Verdict | None:
    """The verdict of one or more votes: the mean as score, the majority as label, both over the votes that were read.

    An even split has no label. None where a vote was not had.
    """
    scores = [None if vote is None or vote.value is None else float(vote.value == "correct") for vote in votes]
    return averaged(votes, scores, decides=True)


def averaged(
    votes: Sequence[Told[str] | Told[float] | None], scores: Sequence[float | None], *, decides: bool
) -> Verdict | None:
    """The verdict of repeats with these scores; `votes` are all replies behind them, for their status and text."""
    had = [vote for vote in votes if vote is not None]
    if len(had) < len(votes):
        return None
    raw = "\n---\n".join(vote.raw or "" for vote in had)
    read = [score for score in scores if score is not None]
    if not read:
        status = next(vote.status for vote in had if vote.status != "ok")
        return Verdict(None, None, status, raw, tuple(scores))
    mean = fmean(read)
    name = None if mean == 0.5 or not decides else "correct" if mean > 0.5 else "wrong"
    return Verdict(mean, name, "ok", raw, tuple(scores))
