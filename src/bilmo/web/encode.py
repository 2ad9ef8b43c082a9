"""Vectors as JSON numbers, base64, .npy or an Arrow stream.

Knows: numpy, pyarrow. Blind to: HTTP.
"""

# N tokens of all texts, S texts, L layers, W width

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bilmo.embed.output.jsonl import numbers
from bilmo.embed.texts import Floats
from bilmo.errors import TextError, need

NPY = "application/x-npy"
ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
BASE64 = "base64"
BYTES = {NPY: 4, ARROW: 4, JSON: 14, BASE64: 5.4}
"""Bytes of a number in each form, roughly."""


@dataclass(frozen=True)
class Found:
    """One text with its vectors."""

    tokens: list[str]
    sentences: list[int]
    offsets: list[tuple[int, int]] | None
    vectors: Floats
    """(N, W) or (L+1, N, W); pooled (W,) or (L+1, W)."""


def as_json(text: Any) -> bytes:
    """JSON in UTF-8. What UTF-8 cannot hold, a lone surrogate, is escaped."""
    return json.dumps(text, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")


def base64_of(vectors: Floats) -> str:
    """float32, little-endian, in base64."""
    return base64.b64encode(np.ascontiguousarray(vectors, dtype="<f4").tobytes()).decode("ascii")


def embed_answer(model: str, found: Sequence[Found], *, in_base64: bool) -> bytes:
    """The JSON of an answer."""
    parts = []
    for one in found:
        facts = {"tokens": one.tokens, "sentences": one.sentences, "offsets": one.offsets}
        facts["shape"] = list(one.vectors.shape)
        vectors = f'"{base64_of(one.vectors)}"' if in_base64 else numbers(one.vectors)
        parts.append(as_json(facts)[:-1] + f', "vectors": {vectors}}}'.encode("ascii"))
    return as_json({"model": model})[:-1] + b', "results": [' + b", ".join(parts) + b"]}"


def npy(vectors: Sequence[Floats], *, pooled: bool) -> bytes:
    """One array: (S, ...) if pooled, otherwise the tokens of all texts, (N, W) or (L+1, N, W)."""
    if not vectors:
        raise TextError("an array needs at least one text")
    file = io.BytesIO()
    np.save(file, np.stack(vectors) if pooled else np.concatenate(vectors, axis=-2), allow_pickle=False)
    return file.getvalue()


def arrow(found: Sequence[Found], *, pooled: bool) -> bytes:
    """An Arrow stream with one row per text: its tokens and its vectors.

    `vector` is a list of W numbers if tokens are pooled; otherwise `vectors` has one such list per token. With layers,
    there is one column per layer: `layer_0`, `layer_1` and so on.
    """
    pa: Any = need("pyarrow", extra="data", purpose="An Arrow stream")
    if not found:
        raise TextError("an Arrow stream needs at least one text")
    layers = found[0].vectors.ndim == (2 if pooled else 3)
    width = found[0].vectors.shape[-1]
    columns: dict[str, Any] = {"tokens": pa.array([one.tokens for one in found], pa.list_(pa.string()))}
    names = [f"layer_{k}" for k in range(len(found[0].vectors))] if layers else ["vector" if pooled else "vectors"]
    for number, name in enumerate(names):
        values = [one.vectors[number] if layers else one.vectors for one in found]
        flat = pa.array(np.concatenate([value.reshape(-1) for value in values]).astype(np.float32))
        column = pa.FixedSizeListArray.from_arrays(flat, width)
        if not pooled:
            ends = np.cumsum([0, *(len(value) for value in values)])
            column = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), column)
        columns[name] = column
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def vectors_alone(vectors: Sequence[Floats]) -> bytes:
    """The vectors as a JSON list with one entry per text."""
    return f"[{', '.join(numbers(one) for one in vectors)}]".encode("ascii")


def openai_answer(model: str, vectors: Sequence[Floats], tokens: int, *, in_base64: bool) -> bytes:
    """The JSON of OpenAI's API."""
    parts = [
        f'{{"object": "embedding", "index": {k}, "embedding": '
        + (f'"{base64_of(one)}"' if in_base64 else numbers(one))
        + "}"
        for k, one in enumerate(vectors)
    ]
    rest = as_json({"model": model, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})
    return f'{{"object": "list", "data": [{", ".join(parts)}], '.encode("ascii") + rest[1:]
