"""Vectors as Parquet: a row a token, or a row a sentence where tokens were pooled.

Knows: pyarrow, writing beside. Blind to: how vectors are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bilmo.embed.output.table import Form, Row, Table
from bilmo.errors import need
from bilmo.store.atomic import new_file

GROUP = 1 << 26
"""Bytes of vectors that make a row group, the unit that readers skip or take."""


def arrow() -> tuple[Any, Any]:
    """The packages that write Parquet."""
    return tuple(need(name, extra="data", purpose="Writing Parquet") for name in ("pyarrow", "pyarrow.parquet"))  # type: ignore[return-value]


def write(path: Path, table: Table) -> list[str]:
    """`sentence` is its number from 0; then `position`, `token` and its vector, or all `tokens` and one vector.

    The vector is called `vector`, or `layer_0`, `layer_1` and so on. A sentence without tokens has no rows, or, where
    tokens were pooled, a row of zeros.
    """
    pa, parquet = arrow()
    form = table.form
    vectors = _vector_names(form)
    kind = pa.list_(pa.float16() if form.dtype == "float16" else pa.float32(), form.width)
    first = {"sentence": pa.int64()}
    first |= {"tokens": pa.list_(pa.string())} if form.pooled else {"position": pa.int32(), "token": pa.string()}
    schema = pa.schema(first | dict.fromkeys(vectors, kind))
    # Floats pack better when their first bytes stand together, then their second bytes, and so on.
    settings = {
        "compression": "zstd",
        "use_dictionary": [name for name in first if name in ("sentence", "token")],
        "use_byte_stream_split": [f"{name}.list.element" for name in vectors],
    }
    with new_file(path) as partial, parquet.ParquetWriter(partial, schema, **settings) as file:
        for group in _groups(table):
            columns = _columns(group, form)
            for number, name in enumerate(vectors):
                values = [row.vectors if form.layers is None else row.vectors[number] for _, row in group]
                flat = np.concatenate([value.reshape(-1) for value in values])
                columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(flat), form.width)
            file.write_table(pa.table(columns, schema=schema))
    return []


def _vector_names(form: Form) -> list[str]:
    return ["vector"] if form.layers is None else [f"layer_{number}" for number in range(form.layers)]


def _groups(table: Table) -> Iterator[list[tuple[int, Row]]]:
    group: list[tuple[int, Row]] = []
    size = 0
    for number, row in enumerate(table.read()):
        group.append((number, row))
        size += row.vectors.nbytes
        if size >= GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def _columns(group: list[tuple[int, Row]], form: Form) -> dict[str, Any]:
    if form.pooled:
        return {"sentence": [number for number, _ in group], "tokens": [_whole(row.tokens) for _, row in group]}
    return {
        "sentence": np.repeat([number for number, _ in group], [len(row.tokens) for _, row in group]),
        "position": np.concatenate([np.arange(len(row.tokens), dtype=np.int32) for _, row in group]),
        "token": [token for _, row in group for token in _whole(row.tokens)],
    }


def _whole(tokens: list[str]) -> list[str]:
    """Tokens that UTF-8 can hold: a lone surrogate, which it cannot, becomes U+FFFD."""
    return [token.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for token in tokens]
