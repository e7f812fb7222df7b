"""What one turn, record, question and gold row is."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation as the benchmark holds it.

    `position` counts turns through the whole conversation in time order, from 0.
    `said_at` is the session's time where the benchmark dates sessions, or None where it is unknown.
    """

    id: str
    conversation_id: str
    session_id: str
    position: int
    speaker: str
    text: str
    caption: str | None
    said_at: datetime | None


@dataclass(frozen=True, slots=True)
class Membership:
    """One session as a conversation holds it: which content, under which ids, when.

    `session` is the address of the content, which other conversations may hold too. A turn of it goes by
    `prefix/name` here. `place` counts the conversation's sessions in time order, `position` the `turns` before it.
    """

    conversation_id: str
    place: int
    session: str
    session_id: str
    prefix: str
    position: int
    turns: int
    said_at: datetime | None


@dataclass(frozen=True, slots=True)
class Record:
    """One unit of a memory store.

    `source_turn_ids` name the turns that the record was made from; empty means unknown,
    and then evidence metrics of the record are undefined.
    """

    id: str
    conversation_id: str
    session_id: str
    position: int
    speaker: str
    text: str
    said_at: datetime | None
    source_turn_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question as readers and answerers may see it: without its gold.

    `asked_at` is the reference date ("now") of the question, or None where it is unknown.
    """

    id: str
    conversation_id: str
    kind: str
    asked_at: datetime | None
    text: str


@dataclass(frozen=True, slots=True)
class Gold:
    """What only metrics and judges may see of a question.

    `answer` is None where the benchmark has none (an adversarial question).
    `turn_ids` are resolved evidence turns, `session_ids` the sessions that the benchmark names as evidence; empty
    means that the metrics over them are undefined. `rubric`: what a reply is scored by, item by item, where the
    benchmark scores so. `abstention`: the right reply says that the question cannot be answered.
    """

    question_id: str
    answer: str | None
    turn_ids: tuple[str, ...]
    session_ids: tuple[str, ...]
    rubric: tuple[str, ...] = ()
    abstention: bool = False
