"""What a judge model's reply says: its label, its grade or its order, or nothing that can be relied on.

Nothing is guessed. A reply that says two things, hedges or says none is None, and the judge asks once more.
"""

import re
from collections.abc import Mapping, Sequence

Words = Mapping[str, Sequence[str]]
"""Label → the words that a reply may say it with, the judge's own word first."""

_SAME = {
    "correct": ("correct", "right", "yes", "true", "1"),
    "wrong": ("wrong", "incorrect", "no", "false", "0"),
    "sufficient": ("sufficient", "enough"),
    "insufficient": ("insufficient",),
    "uncertain": ("uncertain", "unsure", "unclear"),
}
_EVERYDAY = frozenset(
    ("yes", "no", "true", "false", "right", "enough", "0", "1")
)  # said in sentences, they say nothing

_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_UNOPENED = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_KEYS = r"label|verdict|judge?ment|decision|grade|result|rating|score|is_correct|correct|sufficient"
_FIELD = re.compile(
    rf"""(?:(?<![\w"'*-])["'*]*(?:{_KEYS})|(?:^|[{{,])[ \t"'*_#>-]*(?:final\s+)?answer)["'*]*\s*[:=]\s*["'*]*"""
    r"""(?P<value>[^"'*{},\n]+?)\s*(?P<end>["'*,}\n]|\Z)""",
    re.IGNORECASE | re.MULTILINE,
)
_FLOOD = re.compile(r"""[\s"'*_#>-]{50,}""")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_ADDRESSED = re.compile(r"\A[\s*_#>-]*([^\W\d_]+)[*_]*\s*(?:[.,:;!)—–-]|\Z)")
_GRADE = re.compile(r"(-?(?:\d+(?:\.\d+)?|\.\d+))(?P<more>[\d/%]|[.,]\d|\s*(?:or\b|to\b|[-–—]\s*\.?\d))?")
_ITEM = re.compile(r"\d+[.)]\s+\w")
_BRACKETS = re.compile(r"\[\s*(?:\d+\s*(?:,\s*\d+\s*)*,?\s*)?\]")

_NEGATIONS = frozenset(("not", "never", "neither", "nor", "hardly"))
_SAID_OF = frozenset(
    ("is", "are", "was", "were", "be", "as", "it", "answer", "reply", "response", "evidence", "but", "yet", *_NEGATIONS)
)
_ADVERBS = frozenset(("therefore", "thus", "so", "clearly", "factually", "fully", "completely", "entirely", "also"))
_HEDGES = re.compile(
    r"\b(?:whether|if|unless|would|could|might|maybe|either|or|cannot|can['’]t|unclear|unsure|unable|between)\b",
    re.IGNORECASE,
)


def words(labels: Sequence[str], own: str) -> Words:
    """Label → words: the judge's `own`, written `yes/no` in the labels' order, then what models say instead.

    Raises `ValueError` unless there is one word a label and all differ.
    """
    said = [word.strip() for word in own.split("/")]
    if len({word.lower() for word in said}) != len(labels) or not all(map(_WORD.fullmatch, said)):
        raise ValueError(f"words must be {len(labels)} different words with slashes between them, not {own!r}")
    taken = {word.lower() for word in said}
    return {
        name: (word, *(same for same in _SAME[name] if same not in taken))
        for name, word in zip(labels, said, strict=True)
    }


def label(text: str | None, known: Words, *, cut: bool = False) -> str | None:
    """The one label that `text` says, or None.

    In this order: labelled fields (JSON with any quotes, in a fence, after prose, `Label: x`); a last line that is a
    label alone; a first line that is, or a first word set off from what follows ("Yes, because …"); the labels said in
    sentences ("the answer is not correct"), unless one is hedged or asked. Where two disagree within a step, the first
    line with the last, or a beginning with a later sentence, it is None. Thoughts in `<think>` count for nothing.
    `cut`: the reply stopped at its token limit, and only its closed fields and its beginning count.
    """
    said = _without_thoughts(text)
    lines = [line for line in said.splitlines() if _WORD.search(line)]
    if not lines:
        return None
    alone, last = _exact(lines[0], known), None if cut else _exact(lines[-1], known)
    values = _fields(said, cut=cut)
    told = {name for value in values if (name := _exact(value, known))}
    if told:
        told |= {name for value in values if (name := _begun(value, known))}
    elif last:
        told = {last, alone or last}
    if told:
        return told.pop() if len(told) == 1 else None
    first = alone or _addressed(said, known)
    later = set() if cut else _in_sentences("\n".join(lines[1:]) if alone else said, known)
    if alone:
        later.discard(None)  # a label on a line of its own is sure, whatever is doubted behind it
    if first is not None:
        return first if later <= {first} else None
    return later.pop() if len(later) == 1 else None


def grade(text: str | None, allowed: Sequence[float], *, cut: bool = False) -> float | None:
    """The one grade of `allowed` that `text` gives, or None: in a labelled field, else on the last or first line.

    The number of an item in a list is no grade, and "0 or 1" and "0,5" are none. Of a reply that was `cut` the first
    line counts where it was ended: a 0 may have been the beginning of 0.5.
    """
    said = _without_thoughts(text)
    lines = [line.strip(" \t*_#`\"'") for line in said.splitlines()]
    lines = [line for line in lines if line]
    ends = (lines[:-1][:1],) if cut else (lines[-1:], lines[:1])
    for places in (_fields(said, cut=cut), *([line for line in end if not _ITEM.match(line)] for end in ends)):
        numbers = [number for place in places if (number := _GRADE.match(place.strip()))]
        found = {float(number[1]) for number in numbers}
        if found:
            sure = len(found) == 1 and found <= set(allowed) and not any(number["more"] for number in numbers)
            return found.pop() if sure else None
    return None


def order(text: str | None, items: int) -> tuple[int, ...] | None:
    """The last bracketed list of whole numbers in `text`, each in [0, items], or None. 0 is an item of no rank.

    A repeated number counts where it is first said. A line of several brackets that ends with a single number is no
    list: "[2] > [1] > [3]".
    """
    said = _without_thoughts(text)
    found = list(_BRACKETS.finditer(said))
    if not found:
        return None
    numbers = [int(each) for each in re.findall(r"\d{1,6}", found[-1][0])]
    beside = len(found) > 1 and "\n" not in said[found[-2].end() : found[-1].start()]
    if any(each > items for each in numbers) or (beside and len(numbers) == 1):
        return None
    return tuple(each for place, each in enumerate(numbers) if each == 0 or each not in numbers[:place])


def _without_thoughts(text: str | None) -> str:
    """What is said, floods of blanks and marks shortened: the patterns' time grows with the square of one."""
    said = _UNOPENED.sub("", _THOUGHT.sub("", text or ""))
    return _FLOOD.sub(lambda found: "\n" if "\n" in found[0] else " ", said).strip()


def _fields(text: str, *, cut: bool) -> list[str]:
    """The values of labelled fields; of a reply that was cut, only those that are closed."""
    return [found["value"].strip() for found in _FIELD.finditer(text) if found["end"] or not cut]


def _exact(text: str, known: Words) -> str | None:
    """The label whose word `text` is, but for case and marks around it; "not" before the word turns it."""
    said = [word.lower() for word in _WORD.findall(text)]
    negated = len(said) == 2 and said[0] == "not"
    if len(said) != 1 and not negated:
        return None
    name = next((name for name, same in known.items() if said[-1] in map(str.lower, same)), None)
    return _opposite(name, known) if negated else name


def _begun(text: str, known: Words) -> str | None:
    """The label whose word `text` begins with, as "insufficient or uncertain" does; everyday words say nothing."""
    first = _WORD.search(text)
    return _exact(first[0], known) if first and _tells(first[0]) else None


def _tells(word: str) -> bool:
    """Whether a label's word says the label in a sentence too; a letter, such as A, does not."""
    return len(word) > 1 and word.lower() not in _EVERYDAY


def _opposite(name: str | None, known: Words) -> str | None:
    """What denying a label says: the other of a pair; of three, the second for the first, else nothing sure."""
    first, second, *more = known
    return second if name == first else first if name == second and not more else None


def _addressed(text: str, known: Words) -> str | None:
    """The label that the first word says, where a mark sets it off from what follows."""
    found = _ADDRESSED.match(text)
    return _exact(found[1], known) if found else None


def _in_sentences(text: str, known: Words) -> set[str | None]:
    """Every label that sentences say, not those that ask; None where one hedges or denies what has no opposite."""
    said: set[str | None] = set()
    for sentence in _SENTENCE.split(text):
        asked = sentence.rstrip(" *_\"'").endswith("?")
        found = set() if asked else _said_in(_WORD.findall(sentence), known)
        said |= {None} if found and _HEDGES.search(sentence) else found
    return said


def _said_in(sentence: Sequence[str], known: Words) -> set[str | None]:
    """The labels of one sentence's words.

    A word in capitals counts unless the one before it is in capitals too and no label; any other only where it is
    said *of* something: "is correct", not "the correct answer".
    """
    telling = {word.lower(): name for name, same in known.items() for word in same if _tells(word)}
    found: set[str | None] = set()
    for place, word in enumerate(sentence):
        if word.lower() not in telling:
            continue
        before = [each.lower() for each in sentence[:place] if each.lower() not in _ADVERBS][-2:]
        denied = any(each in _NEGATIONS or each.endswith(("n't", "n’t")) for each in before)
        shouted = word.isupper() and (
            place == 0 or sentence[place - 1].lower() in telling or not sentence[place - 1].isupper()
        )
        if denied or shouted or (before and before[-1] in _SAID_OF):
            name = telling[word.lower()]
            found.add(_opposite(name, known) if denied else name)
    return found
