"""Facts are what the model said of each batch, with their sources, and nothing that it did not say."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from storage.errors import InputError
from storage.records import Turn
from tasks.asking import Asking
from tasks.llm import Model, Reply, Request
from tasks.outcomes import EndpointError
from tasks.writers.conversation import Case, Written
from tasks.writers.facts import Facts
from tasks.writers.saying import facts

MODEL = Model("small", "m")


@dataclass(frozen=True)
class Canned(Asking):
    """Replies by rule; keeps what was asked."""

    say: Callable[[str], str | Reply] = lambda text: "[]"
    seen: list[Request] = field(default_factory=list)

    def ask(self, requests: Sequence[Request]) -> list[Reply]:
        self.seen.extend(requests)
        said = [self.say(request.messages[-1].content) for request in requests]
        return [one if isinstance(one, Reply) else Reply(one, "ok", "stop") for one in said]


def turns(*sessions: int, name: str = "c", dated: bool = True) -> list[Turn]:
    """A conversation of sessions of so many turns, Ada and Bo in turn."""
    made: list[Turn] = []
    for session, count in enumerate(sessions, 1):
        for place in range(1, count + 1):
            made.append(
                Turn(
                    id=f"{name}/D{session}:{place}",
                    conversation_id=name,
                    session_id=f"{name}/S{session}",
                    position=len(made),
                    speaker="Ada" if place % 2 else "Bo",
                    text=f"message {session} {place}",
                    caption=None,
                    said_at=datetime(2023, 5, 7 + session, 13, 56) if dated else None,
                )
            )
    return made


def embed(texts: Sequence[str]) -> Any:
    """Unit vectors by letters: texts of the same letters are the same."""
    counts = np.array(
        [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz0123456789"] for text in texts]
    )
    return (counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)).astype(np.float32)


def write(asking: Asking, *cases: list[Turn], **parameters: Any) -> list[Written]:
    return list(Facts("small", **parameters).write_all([Case(case) for case in cases], asking, embed))


def said(*items: tuple[str, Any]) -> str:
    return json.dumps([{"fact": text, "messages": numbers} for text, numbers in items])


def numbered(prompt: str) -> list[str]:
    """The lines of a prompt that number the batch's messages."""
    return [line for line in prompt.splitlines() if line[:1].isdigit()]


ONE = [("Ada has a parrot.", [2])]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (said(("Ada has a parrot.", [2])), ONE),
        ('```json\n[{"fact": "Ada has a parrot.", "messages": [2]}]\n```', ONE),
        ('<think>[{"fact": "no", "messages": [1]}]</think>\n[{"fact": "Ada has a parrot.", "messages": [2]}]', ONE),
        ('Here [1] they are: [{"fact": "Ada has\\na parrot.", "messages": "2"}] Done.', ONE),
        ('{"facts": [{"memory": "Ada has a parrot.", "messages": ["[2]"]}]}', ONE),
        ('[{"fact": "Ada has a parrot."}]', [("Ada has a parrot.", [])]),
        ('[{"fact": "Ada \\ud800\\u0000has", "messages": null}]', [("Ada \ufffdhas", [])]),
        ("[]", []),
        ('{"facts": []}', []),
        ("", None),
        ("None of this is worth keeping.", None),
        ("{}", None),
        ('["Ada has a parrot."]', None),
        ('[{"fact": "  ", "messages": [1]}]', None),
        ('[{"fact": "Ada has a parrot.", "messages": []}, {"fact": "Bo', None),
        ("[" * 100_000, None),
    ],
)
def test_a_reply_says_these_facts_or_none_that_can_be_relied_on(reply: str, expected: list[Any] | None) -> None:
    found = facts(reply)
    assert (None if found is None else [(one.fact, one.messages) for one in found]) == expected


def test_a_reply_that_was_cut_is_not_read() -> None:
    assert facts(said(("Ada has a parrot.", [1])), cut=True) is None


def test_batches_end_with_their_session_and_are_asked_in_order_with_the_messages_before() -> None:
    asking = Canned("", (MODEL,))
    write(asking, turns(5, 2), batch=3, recent=2)
    prompts = [request.messages[-1].content for request in asking.seen]
    assert [numbered(prompt) for prompt in prompts] == [
        ["1. Ada: message 1 1", "2. Bo: message 1 2", "3. Ada: message 1 3"],
        ["1. Bo: message 1 4", "2. Ada: message 1 5"],
        ["1. Ada: message 2 1", "2. Bo: message 2 2"],
    ]
    recent = [[line for line in prompt.splitlines() if line.startswith(("- Ada:", "- Bo:"))] for prompt in prompts]
    assert recent == [[], ["- Bo: message 1 2", "- Ada: message 1 3"], ["- Bo: message 1 4", "- Ada: message 1 5"]]
    assert ["Monday, 1:56 pm on 8 May, 2023" in prompt for prompt in prompts] == [True, True, False]
    assert "Tuesday, 1:56 pm on 9 May, 2023" in prompts[2]


def test_an_unknown_session_time_is_said_to_be_unknown() -> None:
    asking = Canned("", (MODEL,))
    write(asking, turns(1, dated=False))
    assert "sent on: an unknown date" in asking.seen[0].messages[-1].content


def test_facts_keep_their_sources_dates_and_speakers_under_ids_that_do_not_change() -> None:
    def say(prompt: str) -> str:
        return said(("Bo met Ada.", [2, 1]), ("Bo hums.", [2])) if "message 1 1" in numbered(prompt)[0] else "[]"

    (made,) = write(Canned("", (MODEL,), say), turns(2, 2))
    first, second = made.records
    assert (first.id, second.id) == ("c/D1:1.f0", "c/D1:1.f1")
    assert first.source_turn_ids == ("c/D1:1", "c/D1:2")
    assert second.source_turn_ids == ("c/D1:2",)
    assert (first.speaker, second.speaker) == ("", "Bo")
    assert {(row.session_id, row.said_at) for row in made.records} == {("c/S1", datetime(2023, 5, 8, 13, 56))}
    assert [row.position for row in made.records] == [0, 1]


def test_a_fact_that_numbers_no_message_of_its_batch_has_the_whole_batch_as_source_and_is_counted() -> None:
    asking = Canned("", (MODEL,), lambda prompt: said(("Ada sings.", [9]), ("Bo hums.", []), ("Bo sits.", [7, 1])))
    (made,) = write(asking, turns(2))
    assert [row.source_turn_ids for row in made.records] == [("c/D1:1", "c/D1:2")] * 2 + [("c/D1:1",)]
    assert [(batch.facts, batch.unplaced, batch.repeated) for batch in made.batches] == [(3, 2, 0)]


def test_exact_repeats_are_dropped_within_the_batch_and_among_the_memories_shown_and_counted() -> None:
    asking = Canned(
        "", (MODEL,), lambda prompt: said(("Ada sings.", [1]), ("ada  SINGS", [2]), ("Ada sings well.", [1]))
    )
    (made,) = write(asking, turns(2, 2))
    assert [row.text for row in made.records] == ["Ada sings.", "Ada sings well."]
    assert [(batch.facts, batch.repeated) for batch in made.batches] == [(2, 1), (0, 3)]


def test_a_repeat_of_a_memory_that_was_not_shown_is_added_as_the_source_has_it() -> None:
    """`near` of 0 shows none, so only the batch is compared."""
    (made,) = write(Canned("", (MODEL,), lambda prompt: said(("Ada sings.", [1]))), turns(1, 1), near=0)
    assert [row.text for row in made.records] == ["Ada sings."] * 2


def test_the_memories_shown_are_the_nearest_to_any_message_oldest_first() -> None:
    words = ["alpha", "zebra", "omega", "quilt", "fjord", "nymph"]

    def say(prompt: str) -> str:
        return said(*((word, [1]) for word in words)) if "message 1 1" in numbered(prompt)[0] else "[]"

    case = turns(1, 2)
    asking = Canned("", (MODEL,), say)
    write(asking, case, near=3)
    shown = [line[2:] for line in asking.seen[1].messages[-1].content.splitlines() if line[2:] in words]
    messages = [f"{turn.speaker}: {turn.text}" for turn in case[1:]]
    cosine = {word: max(float(embed([word])[0] @ embed([text])[0]) for text in messages) for word in words}
    best = sorted(words, key=lambda word: -cosine[word])[:3]
    assert shown == [word for word in words if word in best]


def test_one_near_message_brings_a_memory_before_what_lies_between_all_of_them() -> None:
    """`east` is one message's own, `between` has a cosine of 0.71 with both."""
    vectors = {"east": (1, 0), "between": (0.5**0.5, 0.5**0.5), "Ada: message 2 1": (1, 0), "Bo: message 2 2": (0, 1)}

    def say(prompt: str) -> str:
        return said(("between", [1]), ("east", [1])) if "message 1 1" in numbered(prompt)[0] else "[]"

    asking = Canned("", (MODEL,), say)
    writer = Facts("small", near=1)
    list(writer.write_all([Case(turns(1, 2))], asking, lambda texts: np.array([vectors[text] for text in texts])))
    assert [line for line in asking.seen[1].messages[-1].content.splitlines() if line[2:] in vectors] == ["- east"]


def test_a_batch_that_cannot_be_read_is_asked_for_once_more_then_flagged_and_the_next_goes_on() -> None:
    def say(prompt: str) -> str | Reply:
        if prompt.startswith("Reply with the JSON"):
            return "still prose"
        place = numbered(prompt)[0]
        if "message 1 1" in place:
            return "prose"
        if "message 2 1" in place:
            return Reply(None, "refused", "stop")
        return Reply('[{"fact": "Ada', "truncated", "length") if "message 3 1" in place else said(("Ada sings.", [1]))

    asking = Canned("", (MODEL,), say)
    (made,) = write(asking, turns(1, 1, 1, 1))
    assert [batch.status for batch in made.batches] == ["parse_failed", "refused", "truncated", "ok"]
    assert [batch.facts for batch in made.batches] == [0, 0, 0, 1]
    assert "still prose" in (made.batches[0].raw or "")
    assert len(asking.seen) == 6


def test_a_conversation_without_a_reply_stops_and_the_others_are_finished() -> None:
    gone = Reply(None, "failed", error="no answer")
    asking = Canned("", (MODEL,), lambda prompt: gone if "message 2 1" in prompt else "[]")
    made = Facts("small").write_all([Case(turns(1, 1, name="a")), Case(turns(1, name="b"))], asking, embed)
    assert next(made).conversation_id == "b"
    with pytest.raises(EndpointError, match="one of a; run again"):
        next(made)


@pytest.mark.parametrize(("table", "writer", "sent"), [(None, 0.1, 0.1), (0.7, 0.1, 0.7), (None, None, None)])
def test_the_models_table_says_the_temperature_and_the_writer_where_it_does_not(
    table: float | None, writer: float | None, sent: float | None
) -> None:
    asking = Canned("", (Model("small", "m", temperature=table),))
    write(asking, turns(1), temperature=writer)
    assert asking.seen[0].body.get("temperature") == sent


def test_a_model_of_the_batch_api_and_numbers_that_are_too_small_are_refused() -> None:
    with pytest.raises(InputError, match=r"models.small has batch = true"):
        write(Canned("", (Model("small", "m", batch=True),)), turns(1))
    with pytest.raises(ValueError, match="batch of 1 or more"):
        Facts("small", batch=0)
