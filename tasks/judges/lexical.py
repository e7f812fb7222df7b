"""Whether a reply says the gold answer, by shared words alone."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from string import punctuation
from typing import ClassVar

from storage.records import Gold, Question
from tasks.asking import Asking
from tasks.outcomes import Verdict
from tasks.provenance import code
from tasks.text import stem

Items = Sequence[tuple[Question, Gold, str | None]]
Bag = Counter[str]

ABSENT = ("no information available", "not mentioned")
"""What a reply to a category-5 question must hold, in any case, to say that there is no such information."""


@dataclass(frozen=True)
class StemF1:
    """LoCoMo's official score: F1 of the stems that reply and gold share, in [0, 1].

    "multi-hop": both sides are split at commas and each gold part takes its best reply part; mean over gold
    parts. "open-domain": the gold ends at its first ";". "adversarial": 1 iff the reply says that there is
    no such information (`ABSENT`); a gold answer is not looked at. Every other kind: plain F1.
    A missing or blank reply scores 0 and stays in the denominator. A gold without an answer is `failed`.

    Source: snap-research/locomo, task_eval/evaluation.py. Deviations: the original Porter stemmer instead of
    NLTK's extended one; two texts (or parts) of which normalising leaves nothing score 1, there 0.
    """

    name: ClassVar[str] = "stem_f1"
    title: ClassVar[str] = "LoCoMo's official Porter-stem F1 (offline)"
    offline: ClassVar[bool] = True

    def spec(self) -> dict[str, object]:
        """The code that decides, so that a changed rule is another judge."""
        return _spec()

    def judge_many(self, items: Items, asking: Asking | None = None) -> Iterator[Verdict]:
        for question, gold, reply in items:
            yield self._judge(question, gold, reply)

    def _judge(self, question: Question, gold: Gold, reply: str | None) -> Verdict:
        if question.kind == "adversarial":
            return _decided(reply is not None and says_absent(reply))
        if gold.answer is None:
            return Verdict(None, None, "failed")
        if reply is None or not reply.strip():
            return _decided(False)
        return Verdict(official_f1(reply, gold.answer, question.kind), None, "ok")


@dataclass(frozen=True)
class LexicalMatch:
    """A decision on top of the official score: "correct" (1) or "wrong" (0).

    Correct iff all hold, after dates and numbers are written alike on both sides (`canonical_words`):
    1. the reply is not long: at most `slack` words or three times the gold's, whichever is more, so that a
       reply which mentions everything cannot pass;
    2. it has every number, month and weekday of the gold, and neither side alone says yes, no or not;
    3. its official F1 is at least `threshold`, or it holds the gold's words as one run.

    "adversarial": correct iff the reply says that there is no such information and is not long.
    A missing or blank reply is wrong and stays in the denominator. A gold without an answer is `failed`.
    Raises `ValueError` for a threshold outside (0, 1] or a negative slack.
    """

    name: ClassVar[str] = "lexical_match"
    title: ClassVar[str] = "a match rule on top of the stem F1: correct or wrong (offline)"
    offline: ClassVar[bool] = True

    threshold: float = 0.5
    slack: int = 20

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1 or self.slack < 0:
            raise ValueError(f"threshold must be in (0, 1] and slack at least 0, not {self.threshold} and {self.slack}")

    def spec(self) -> dict[str, object]:
        """The code that decides, so that a changed rule is another judge."""
        return _spec()

    def judge_many(self, items: Items, asking: Asking | None = None) -> Iterator[Verdict]:
        for question, gold, reply in items:
            yield self._judge(question, gold, reply)

    def _judge(self, question: Question, gold: Gold, reply: str | None) -> Verdict:
        adversarial = question.kind == "adversarial"
        if gold.answer is None and not adversarial:
            return Verdict(None, None, "failed")
        if reply is None or not reply.strip():
            return _decided(False)
        if adversarial or gold.answer is None:
            return _decided(says_absent(reply) and len(canonical_words(reply)) <= self.slack)
        return _decided(self._matches(reply, gold.answer, question.kind))

    def _matches(self, reply: str, gold: str, kind: str) -> bool:
        said, wanted = canonical_words(reply), canonical_words(_until_semicolon(gold, kind))
        if len(said) > max(self.slack, 3 * len(wanted)) or _contradicts(set(said), set(wanted)):
            return False
        return _holds(said, wanted) or official_f1(_joined(reply), _joined(gold), kind) >= self.threshold


# ---- the official score


def official_f1(reply: str, gold: str, kind: str) -> float:
    """LoCoMo's score of `reply` against `gold` for a question of `kind`, in [0, 1]; see `StemF1`."""
    gold = _until_semicolon(gold, kind)
    if kind == "multi-hop":
        return _f1_by_parts(reply.split(","), gold.split(","))
    return _f1(_stems(reply), _stems(gold))


def says_absent(reply: str) -> bool:
    """Whether a reply says that there is no such information, as the official score reads category 5."""
    return any(phrase in reply.lower() for phrase in ABSENT)


def normalised(text: str) -> str:
    """`text` without commas, case, ASCII punctuation, the words a, an, the, and, and spare white space."""
    bare = text.replace(",", "").lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def _until_semicolon(gold: str, kind: str) -> str:
    return gold.split(";")[0].strip() if kind == "open-domain" else gold


def _stems(text: str) -> Bag:
    return Counter(stem(word) for word in normalised(text).split())


def _f1_by_parts(reply_parts: Iterable[str], gold_parts: Sequence[str]) -> float:
    """Mean over gold parts of the best F1 with a reply part; parts that are alike are worked out once."""
    replies = [_stems(part) for part in dict.fromkeys(reply_parts)]
    golds = Counter(gold_parts)
    best = sum(n * _best_f1(replies, _stems(gold)) for gold, n in golds.items())
    return best / len(gold_parts)


def _best_f1(replies: Iterable[Bag], gold: Bag) -> float:
    return max(_f1(reply, gold) for reply in replies)


def _f1(reply: Bag, gold: Bag) -> float:
    """Harmonic mean of multiset precision and recall; 1 for two empty bags, 0 where nothing is shared."""
    if not reply and not gold:
        return 1.0
    if reply.keys().isdisjoint(gold):
        return 0.0
    shared = (reply & gold).total()
    return 2 * shared / (reply.total() + gold.total())


_NO_PUNCTUATION = str.maketrans("", "", punctuation)
_ARTICLES = re.compile(r"\b(a|an|the|and)\b")


# ---- the match rule


def canonical_words(text: str) -> list[str]:
    """The words of `text` with dates and numbers written one way; articles dropped.

    "May 7th, 2023", "7 of May 2023" and "2023-05-07" are all 7 may 2023; "two" is 2, "twenty five" is 25,
    "1,000" is 1000; a number stands apart from letters it touches ("24June").
    """
    bare = _THOUSANDS.sub("", text.lower())
    bare = _ISO_DATE.sub(lambda m: f" {int(m[3])} {_MONTHS[int(m[2]) - 1]} {m[1]} ", bare)
    words = [_as_written(word) for word in _NUMBER_OR_WORD.findall(bare)]
    words = [word for word in words if word not in _DROPPED]
    return _days_first(_tens_joined(_without_ordinals(words)))


def _as_written(word: str) -> str:
    if word.isascii() and word.isdecimal():
        return word.lstrip("0") or "0"
    return _NUMBER_WORDS.get(word) or _MONTH_NAMES.get(word) or word


def _without_ordinals(words: Sequence[str]) -> list[str]:
    """7th, 1st, 2nd lose their ending; "of" goes between a number and a month."""
    kept: list[str] = []
    for at, word in enumerate(words):
        after_number = bool(kept) and kept[-1].isdecimal()
        next_word = words[at + 1] if at + 1 < len(words) else ""
        if after_number and (word in _ORDINALS or (word == "of" and next_word in _MONTH_SET)):
            continue
        kept.append(word)
    return kept


def _tens_joined(words: Sequence[str]) -> list[str]:
    """20 followed by 5 is 25, as in "twenty five"."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in _TENS and word in _UNITS:
            joined[-1] = str(int(joined[-1]) + int(word))
        else:
            joined.append(word)
    return joined


def _days_first(words: Sequence[str]) -> list[str]:
    """A month followed by a day of it changes places: may 7 2023 is 7 may 2023."""
    turned = list(words)
    for at in range(len(turned) - 1):
        month, day = turned[at], turned[at + 1]
        already = at > 0 and turned[at - 1].isdecimal() and len(turned[at - 1]) <= 2
        if month in _MONTH_SET and not already and day.isdecimal() and len(day) <= 2:
            turned[at], turned[at + 1] = day, month
    return turned


def _contradicts(said: set[str], wanted: set[str]) -> bool:
    """Whether a number, month or weekday of the gold is missing, or only one side affirms or denies."""
    needed = {word for word in wanted if word.isdecimal() or word in _MONTH_SET or word in _WEEKDAYS}
    return not needed <= said or any((word in said) != (word in wanted) for word in _POLARITY)


def _holds(said: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether `wanted`, if it is not empty, stands in `said` as one run of whole words."""
    run = f" {' '.join(wanted)} "
    return bool(wanted) and run in f" {' '.join(said)} "


def _joined(text: str) -> str:
    """`text` in canonical words, its commas kept between them for the score by parts."""
    parts = _PART_COMMA.split(text)
    written = {part: " ".join(canonical_words(part)) for part in set(parts)}
    return ", ".join(written[part] for part in parts)


def _decided(correct: bool) -> Verdict:
    return Verdict(float(correct), "correct" if correct else "wrong", "ok")


def _spec() -> dict[str, object]:
    return {"code": code("tasks.judges.lexical", "tasks.text")}


_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH_SET = frozenset(_MONTHS)
_MONTH_NAMES = {month[:3]: month for month in _MONTHS} | {"sept": "september"}
_WEEKDAYS = frozenset(("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"))
_POLARITY = ("yes", "no", "not")
_NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TEN_WORDS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_NUMBERS)} | {
    word: str(number) for number, word in zip(range(20, 100, 10), _TEN_WORDS, strict=True)
}
_TENS = frozenset(str(number) for number in range(20, 100, 10))
_UNITS = frozenset("123456789")
_ORDINALS = frozenset(("st", "nd", "rd", "th"))
_DROPPED = frozenset(("a", "an", "the", "and"))
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ISO_DATE = re.compile(r"\b((?:19|20)\d\d)-(0[1-9]|1[0-2])-([0-3]\d)\b")
_NUMBER_OR_WORD = re.compile(r"\d+|[^\W\d_]+")
_PART_COMMA = re.compile(r",(?! ?\d{4}\b)")
