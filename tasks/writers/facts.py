"""Facts that a model extracts from a conversation, batch after batch."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from storage.digests import digest
from storage.errors import InputError
from storage.records import Record, Turn
from tasks.asking import Asking
from tasks.evidence import spoken
from tasks.judges.asked import Ask, Told, told
from tasks.llm import Model
from tasks.outcomes import EndpointError
from tasks.prompts import Prompt, load
from tasks.provenance import code
from tasks.writers.conversation import Batch, Case, Embed, Written
from tasks.writers.saying import AGAIN, Said, facts
from tasks.writers.turns import Turns

OFFERS = ("session_time", "memories", "recent", "messages")
PURPOSE = "facts"

Extraction = Generator[Ask[list[Said]], Told[list[Said]], Written]


@dataclass(frozen=True)
class Facts:
    """A store of the Mem0-v3 kind: new facts are added, none is changed.

    A batch is up to `batch` messages of one session, since relative dates are resolved against one session's time.
    The model sees them with the last `recent` messages before them and the `near` existing memories nearest to any
    of them by the store's encoder, oldest first. A fact with the same letters and digits as one of those memories or
    as an earlier fact of its batch is dropped. A fact's sources are the messages that the reply numbers, else the
    whole batch. A reply that cannot be read is asked for once more; then the batch has no facts and says why.
    `temperature` holds where the model's table gives none; none leaves it out. `prompt`: `facts`, `brief` (the messages
    alone, for small models, which reply to `facts` that there is nothing to write) or a text file with any of the
    variables `OFFERS`.
    Source: the MemPursuit paper (arXiv 2610.15642), appendix A.3: 10 messages, 10 memories, temperature 0.1, exact
    duplicates; the prompt is this project's. Inferred, because no source says: the batch's size, that it ends with
    its session, that the nearest message counts; against Mem0's MD5 of the very text, case and punctuation do not
    tell two facts apart. Raises `ValueError` for a number that is too small, `InputError` for an unusable prompt.
    """

    name: ClassVar[str] = "facts"
    title: ClassVar[str] = "facts that a model extracts, batch after batch"

    model: str
    batch: int = 10
    recent: int = 10
    near: int = 10
    temperature: float | None = 0.1
    captions: bool = True
    prompt: str = "facts"

    def __post_init__(self) -> None:
        if self.batch < 1 or min(self.recent, self.near) < 0:
            raise ValueError(f"batch of 1 or more, recent and near of 0 or more expected, {self} found")
        self._prompt()

    def spec(self) -> dict[str, Any]:
        """The prompt's digest and the code by which replies are had."""
        return {"prompt": self._prompt().digest, "code": code("tasks.judges.asked", "tasks.evidence")}

    def write_all(self, cases: Sequence[Case], asking: Asking, embed: Embed) -> Iterator[Written]:
        """What is written of each conversation when it is finished; all conversations go on together.

        Each batch of a conversation needs the reply to the one before. Replies are in the ledger, so what was asked
        before is not asked again. Raises `EndpointError` once the others are finished where a conversation had no
        reply, `InputError` for a model of the Batch API, and what `tasks.llm.ask` raises.
        """
        model, stopped = self.model_of(asking), list[str]()
        going = {case.turns[0].conversation_id: self.extraction(case, embed) for case in cases}
        asks = {name: next(extraction) for name, extraction in going.items()}
        while asks:
            replies = told(asking, model, list(asks.values()), purpose=PURPOSE)
            for name, (reply,) in zip(list(asks), replies, strict=True):
                del asks[name]
                if reply is None:
                    stopped.append(name)
                    continue
                try:
                    asks[name] = going[name].send(reply)
                except StopIteration as finished:
                    yield finished.value
        if stopped:
            raise EndpointError(
                f"writer facts: a reply for every batch expected, none had for one of {', '.join(stopped)}; "
                f"run again to go on from there"
            )

    def model_of(self, asking: Asking) -> Model:
        """The model as it is asked. Raises `InputError` for one of the Batch API: a batch a day is no pace."""
        model = asking.model(self.model)
        if model.batch:
            raise InputError(
                f"writer facts: a model without batch expected, since each request needs the reply before it; "
                f"models.{self.model} has batch = true"
            )
        return model if model.temperature is not None else replace(model, temperature=self.temperature)

    def extraction(self, case: Case, embed: Embed) -> Extraction:
        """Yields what to ask for each batch of a conversation, is sent what was told, returns what is written."""
        prompt, shown = self._prompt(), _shown(case.turns, self.captions)
        memory, accounts = Memory(embed, self.near), list[Batch]()
        before = 0
        for turns in self.batches(case.turns):
            texts = shown[before : before + len(turns)]
            held = memory.near(texts)
            said = {
                "session_time": _time(turns[0]),
                "memories": _listed([record.text for record in held]),
                "recent": _listed(shown[max(0, before - self.recent) : before]),
                "messages": "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1)),
            }
            reply = yield Ask(prompt.fill(said), prompt.digest, facts, AGAIN)
            accounts.append(memory.add(turns, reply, held))
            before += len(turns)
        return Written(case.turns[0].conversation_id, memory.records, accounts)

    def batches(self, turns: Sequence[Turn]) -> list[list[Turn]]:
        """The turns in order, up to `batch` together, each of one session."""
        sessions = (list(held) for _, held in groupby(turns, lambda turn: turn.session_id))
        return [held[at : at + self.batch] for held in sessions for at in range(0, len(held), self.batch)]

    def _prompt(self) -> Prompt:
        return load("writing", self.prompt, OFFERS, needs=("messages",))


class Memory:
    """The records of one conversation so far, and which of them lie near to some texts."""

    def __init__(self, embed: Embed, near: int) -> None:
        self._embed, self._near = embed, near
        self._vectors: list[NDArray[np.float32]] = []
        self.records: list[Record] = []

    def near(self, texts: Sequence[str]) -> list[Record]:
        """The records whose cosine with any of `texts` is highest, oldest first; ties go to the older."""
        if len(self.records) <= self._near or not self._near:
            return self.records[: self._near]
        new = [record.text for record in self.records[len(self._vectors) :]]
        self._vectors += list(self._embed(new)) if new else []
        best = (np.stack(self._vectors) @ self._embed(texts).T).max(axis=1)
        return [self.records[place] for place in sorted(np.argsort(-best, kind="stable")[: self._near])]

    def add(self, turns: Sequence[Turn], reply: Told[list[Said]], held: Sequence[Record]) -> Batch:
        """Append the facts of a batch that neither `held` nor the batch says already; what came of it."""
        if reply.value is None:
            return Batch(turns[0].id, len(turns), reply.status, raw=reply.raw)
        known = {same(record.text) for record in held}
        before, unplaced = len(self.records), 0
        for said in reply.value:
            if (address := same(said.fact)) in known:
                continue
            known.add(address)
            sources = [turn for number, turn in enumerate(turns, 1) if number in said.messages]
            unplaced += not sources
            self.records.append(self._record(turns[0], said.fact, sources or turns, len(self.records) - before))
        made = len(self.records) - before
        return Batch(turns[0].id, len(turns), "ok", made, len(reply.value) - made, unplaced)

    def _record(self, first: Turn, text: str, sources: Sequence[Turn], place: int) -> Record:
        speakers = {turn.speaker for turn in sources}
        return Record(
            id=f"{first.id}.f{place}",
            conversation_id=first.conversation_id,
            session_id=first.session_id,
            position=len(self.records),
            speaker=speakers.pop() if len(speakers) == 1 else "",
            text=text,
            said_at=first.said_at,
            source_turn_ids=tuple(turn.id for turn in sources),
        )


def same(text: str) -> str:
    """The address of a fact's letters and digits, by which exact duplicates are found."""
    return digest("".join(letter for letter in text.casefold() if letter.isalnum()))


def _shown(turns: Sequence[Turn], captions: bool) -> list[str]:
    return [" ".join(record.text.split()) for record in Turns(captions=captions).write(turns)]


def _time(turn: Turn) -> str:
    return f"{turn.said_at:%A}, {spoken(turn.said_at)}" if turn.said_at else "an unknown date"


def _listed(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts) or "(nothing)"
