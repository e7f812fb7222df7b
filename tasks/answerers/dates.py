"""Which calendar time an expression in a dated text means, printed as LoCoMo's answers print it.

Days print as "7 May 2023", months as "June 2023", years as "2022", and what stays loose keeps its anchor:
"The week before 9 June 2023", "The Friday before 15 July 2023", "A few days before 24 May 2023".
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SEASONS = ("winter", "spring", "summer", "fall")
"""Northern quarters that begin in December, March, June, September; a winter has the year of its January."""

_NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six",
    "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
COUNTS = {word: number for number, word in enumerate(_NUMBERS)} | {"a": 1, "an": 1}


@dataclass(frozen=True, slots=True)
class Mention:
    """One expression of time in a text: where it stands, and what it means.

    `start`, `end`: its place in the text that was searched. `printed`: its meaning.
    `explicit`: it names its date or year itself and does not lean on the day it was said.
    """

    start: int
    end: int
    printed: str
    explicit: bool


def mentions(text: str, said_on: date | None) -> tuple[Mention, ...]:
    """Every expression of time in `text` that has a meaning, left to right, without overlaps.

    Where two overlap the earlier start wins, then the longer. With `said_on` None only explicit dates are
    found. A year alone is one of 1900 to 2099. A date that no calendar has ("31 February 2023") is not a
    mention. Linear in the text: one pass a pattern; runs of white space must have been squeezed to one blank,
    or expressions across them are missed.
    """
    found = sorted(_candidates(text, said_on), key=lambda mention: (mention.start, -mention.end))
    kept: list[Mention] = []
    for mention in found:
        if not kept or mention.start >= kept[-1].end:
            kept.append(mention)
    return tuple(kept)


def resolve(expression: str, said_on: date | None) -> str | None:
    """What the first expression of time in `expression` means, or None where there is none."""
    found = mentions(expression, said_on)
    return found[0].printed if found else None


def day(of: date) -> str:
    """`of` as "7 May 2023"."""
    return f"{of.day} {month(of)}"


def month(of: date) -> str:
    """`of`'s month as "May 2023"."""
    return f"{MONTHS[of.month - 1]} {of.year}"


def _candidates(text: str, said_on: date | None) -> Iterator[Mention]:
    for pattern, read in _EXPLICIT:
        for match in pattern.finditer(text):
            yield from _mention(match, read(match), explicit=True)
    if said_on is None:
        return
    for pattern, resolve_on in _RELATIVE:
        for match in pattern.finditer(text):
            yield from _mention(match, _within_calendar(resolve_on, match, said_on), explicit=False)


def _mention(match: re.Match[str], printed: str | None, explicit: bool) -> Iterator[Mention]:
    if printed is not None:
        yield Mention(match.start(), match.end(), printed, explicit)


def _within_calendar(
    resolve_on: Callable[[re.Match[str], date], str | None], match: re.Match[str], said_on: date
) -> str | None:
    try:
        return resolve_on(match, said_on)
    except (ValueError, OverflowError):  # before year 1, after year 9999, or 30 February
        return None


# ---- dates that name themselves


def _full_date(match: re.Match[str]) -> str | None:
    try:
        return day(date(int(match["year"]), _month_number(match["month"]), int(match["day"])))
    except ValueError:
        return None


def _month_of_year(match: re.Match[str]) -> str:
    return f"{MONTHS[_month_number(match['month']) - 1]} {match['year']}"


def _season_of_year(match: re.Match[str]) -> str:
    return f"{match['season'].capitalize()} {match['year']}"


def _year(match: re.Match[str]) -> str:
    return f"Since {match['year']}" if match["since"] else match["year"]


def _month_number(name: str) -> int:
    if name.isdecimal():
        return int(name)
    return next(number for number, full in enumerate(MONTHS, 1) if full.lower().startswith(name.lower()[:3]))


# ---- expressions that lean on the day they were said


def _named_day(match: re.Match[str], said_on: date) -> str:
    return day(said_on + timedelta(days=_NAMED_DAYS[match[0].lower().removeprefix("the ")]))


def _ago(match: re.Match[str], said_on: date) -> str:
    return _counted(match["count"], match["unit"], -1, said_on)


def _ahead(match: re.Match[str], said_on: date) -> str:
    return _counted(match["count"], match["unit"], 1, said_on)


def _counted(count: str, unit: str, side: int, said_on: date) -> str:
    """Days, months and years from a number are exact; weeks and uncounted units keep their anchor."""
    words, unit = count.lower(), unit.lower()
    number = _number(words)
    if number is None:
        anchor = str(said_on.year) if unit == "year" else day(said_on)
        loose = "Several" if words == "several" else "A few"
        return f"{loose} {unit}s {_SIDES[side]} {anchor}"
    if unit == "day":
        return day(said_on + timedelta(days=side * number))
    if unit == "month":
        return month(_months_on(said_on, side * number))
    if unit == "year":
        return str(_checked_year(said_on.year + side * number))
    return _weeks(number, unit, f"{_SIDES[side]} {day(said_on)}")


def _number(words: str) -> int | None:
    """The number that `words` count, or None for "a few" and "several"."""
    if "couple" in words:
        return 2
    return int(words) if words.isdecimal() else COUNTS.get(words)


def _weeks(number: int, unit: str, anchor: str) -> str:
    if number == 1:
        return f"The {unit} {anchor}"
    words = next((word for word, count in COUNTS.items() if count == number), str(number))
    return f"{words.capitalize()} {unit}s {anchor}"


def _the_week_before(match: re.Match[str], said_on: date) -> str:
    return f"The {match['unit'].lower()} before {day(said_on)}"


def _period(match: re.Match[str], said_on: date) -> str:
    """ "Last week", "this weekend", "next month", "last year"."""
    step, unit = _STEPS[match["step"].lower()], match["unit"].lower()
    if unit == "month":
        return month(_months_on(said_on, step))
    if unit == "year":
        return str(_checked_year(said_on.year + step))
    return f"The {unit} {_SIDES[step]} {day(said_on)}"


def _weekday(match: re.Match[str], said_on: date) -> str:
    """ "Last Friday", "on Friday", "this Friday", "next Friday": the weekday keeps its name."""
    name = next(full for full in WEEKDAYS if full.lower().startswith(match["weekday"].lower()[:3]))
    side = "after" if match["step"].lower() in ("next", "this", "this coming", "coming") else "before"
    return f"The {name} {side} {day(said_on)}"


def _season(match: re.Match[str], said_on: date) -> str:
    """Last: the latest that is over. Next: the first that has not begun. This: that of the year."""
    season, step = match["season"].lower(), _STEPS[match["step"].lower()]
    wanted = SEASONS.index(season.replace("autumn", "fall"))
    shifted = _months_on(said_on, 1)  # December joins the year of its winter
    now, year = (shifted.month - 1) // 3, shifted.year
    if step == -1:
        year -= now <= wanted
    elif step == 1:
        year += now >= wanted
    elif season != "winter":
        year = said_on.year
    return f"{season.capitalize()} {_checked_year(year)}"


def _month_without_year(match: re.Match[str], said_on: date) -> str:
    """Last: the latest one before this month. Next: the first one after it. Otherwise the nearest one."""
    number, step = _month_number(match["month"]), _STEPS.get(match["step"].lower(), 0)
    back = (said_on.month - number) % 12
    if step == 1:
        return month(_months_on(said_on, 12 - back))
    if step == -1:
        return month(_months_on(said_on, -(back or 12)))
    return month(_months_on(said_on, -back if back <= 6 else 12 - back))


def _day_without_year(match: re.Match[str], said_on: date) -> str | None:
    """The nearest such day; a 29 February looks no further than the years around."""
    number, of_month = int(match["day"]), _month_number(match["month"])
    around = [date(year, of_month, number) for year in _years_with(of_month, number, said_on.year)]
    return day(min(around, key=lambda found: abs(found - said_on))) if around else None


def _years_with(of_month: int, number: int, year: int) -> Iterator[int]:
    for candidate in (year - 1, year, year + 1):
        try:
            date(candidate, of_month, number)
        except ValueError:
            continue
        yield candidate


def _months_on(said_on: date, months: int) -> date:
    """The first day of the month that is `months` after `said_on`'s."""
    index = said_on.year * 12 + said_on.month - 1 + months
    return date(index // 12, index % 12 + 1, 1)


def _checked_year(year: int) -> int:
    return date(year, 1, 1).year


_NAMED_DAYS = {
    "day before yesterday": -2,
    "yesterday": -1,
    "last night": -1,
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
    "tomorrow": 1,
    "day after tomorrow": 2,
}
_STEPS = {
    "last": -1, "past": -1, "this past": -1, "previous": -1, "the past": -1, "earlier this": 0,
    "this": 0, "next": 1, "coming": 1, "this coming": 1, "upcoming": 1,
}  # fmt: skip
_SIDES = {-1: "before", 0: "of", 1: "after"}

_MONTH = r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?" \
         r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"  # fmt: skip
_FULL_MONTH = rf"(?P<month>{'|'.join(MONTHS)})\b"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_ANY_YEAR = r"(?P<year>\d{4})\b"  # beside a day and a month
_YEAR = r"(?P<year>(?:19|20)\d\d)\b"
_WEEKDAY = r"(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b"
_SEASON = r"(?P<season>winter|spring|summer|fall|autumn)\b"
_STEP = r"(?P<step>last|this past|the past|past|previous|earlier this|this coming|upcoming|coming|this|next)"
_COUNT = r"(?:(?:a )?couple(?: of)?|(?:a )?few|several|\d{1,3}|" + "|".join(COUNTS) + ")"
_UNIT = r"(?P<unit>day|week|weekend|month|year)s?"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_EXPLICIT: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]], ...] = (
    (_compiled(rf"\b{_DAY}(?: of)? {_MONTH},? ?{_ANY_YEAR}"), _full_date),
    (_compiled(rf"\b{_MONTH} {_DAY},? ?{_ANY_YEAR}"), _full_date),
    (_compiled(rf"\b{_ANY_YEAR}-(?P<month>[01]\d)-(?P<day>[0-3]\d)\b"), _full_date),
    (_compiled(rf"\b{_MONTH},?(?: of)? {_YEAR}"), _month_of_year),
    (_compiled(rf"\b{_SEASON}(?: of)? {_YEAR}"), _season_of_year),
    (_compiled(rf"\b(?P<since>since )?{_YEAR}"), _year),
)
_RELATIVE: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], str | None]], ...] = (
    (_compiled(rf"\b(?:the )?(?:{'|'.join(_NAMED_DAYS)})\b"), _named_day),
    (_compiled(rf"\b(?P<count>{_COUNT}) {_UNIT} (?:ago|back|earlier)\b"), _ago),
    (_compiled(rf"\bin (?:the next )?(?P<count>{_COUNT}) {_UNIT}\b"), _ahead),
    (_compiled(r"\bthe (?P<unit>week|weekend) before\b"), _the_week_before),
    (_compiled(rf"\b{_STEP} (?P<unit>weekend|week|month|year)\b"), _period),
    (_compiled(rf"\b(?P<step>last|this past|this coming|this|next|coming|on) {_WEEKDAY}"), _weekday),
    (_compiled(rf"\b{_STEP} {_SEASON}"), _season),
    (_compiled(rf"\b(?P<step>last|next|this|in|since|early in|late in) {_FULL_MONTH}"), _month_without_year),
    (_compiled(rf"\b{_DAY}(?: of)? {_FULL_MONTH}"), _day_without_year),
    (_compiled(rf"\b{_FULL_MONTH} {_DAY}\b"), _day_without_year),
)
