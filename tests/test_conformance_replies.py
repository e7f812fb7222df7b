"""Replies that are none."""

import pytest

from tasks.answerers.prompted import outcome
from tasks.llm import Reply


@pytest.mark.parametrize(
    "text", ["Error: failed to generate answer", "ERROR (timeout)", "Exception: no reply", "Traceback (most recent"]
)
def test_a_reported_error_is_no_answer(text: str) -> None:
    reply = Reply(text, "ok", "stop", 9, 9, None, 0.1, 1, None, None)
    answer = outcome(reply)
    assert answer is not None and (answer.text, answer.status) == (None, "parse_failed")
    sound = outcome(Reply("An error of judgement", "ok", "stop", 9, 9, None, 0.1, 1, None, None))
    assert sound is not None and sound.text == "An error of judgement"
