"""Vectors as Parquet: one row per token, or one row per text if tokens are pooled.

Knows: pyarrow, atomic writes. Blind to: how vectors are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bilmo.embed.output.table import EmbeddedText, Table, VectorSpec
from bilmo.errors import need
from bilmo.store.atomic import new_file

GROUP = 1 << 26
"""Bytes of vectors in one row group, the unit that readers load."""


def arrow() -> tuple[Any, Any]:
    """The packages that write Parquet."""
    return tuple(need(name, extra="data", purpose="Writing Parquet") for name in ("pyarrow", "pyarrow.parquet"))  # type: ignore[return-value]


def write(path: Path, table: Table) -> list[str]:
    """Write one row per token, or per text; the metadata of the schema says how the file was made.

    Columns: `sentence`, its number from 0; then `position`, `token`, where it begins and ends in the text (`begin`,
    `end`) and its vector; or all `tokens`, their `offsets` and one vector. The vector is called `vector`, or `layer_0`,
    `layer_1` and so on. A text without tokens has no rows, or one row of zeros if tokens are pooled.
    """
    pa, parquet = arrow()
    spec = table.spec
    vectors = _vector_names(spec)
    kind = pa.list_(pa.float16() if spec.dtype == "float16" else pa.float32(), spec.width)
    first = {"sentence": pa.int64()}
    if spec.pooled:
        first |= {"tokens": pa.list_(pa.string()), "offsets": pa.list_(pa.list_(pa.int32(), 2))}
    else:
        first |= {"position": pa.int32(), "token": pa.string(), "begin": pa.int32(), "end": pa.int32()}
    schema = pa.schema(first | dict.fromkeys(vectors, kind), metadata=spec.about)
    # Floats compress better if all first bytes come together, then all second bytes, and so on.
    settings = {
        "compression": "zstd",
        "use_dictionary": [name for name in first if name in ("sentence", "token")],
        "use_byte_stream_split": [f"{name}.list.element" for name in vectors],
    }
    with (
        new_file(path) as partial,
        partial.open("wb") as opened,  # by us, because pyarrow refuses names that are not UTF-8
        parquet.ParquetWriter(opened, schema, **settings) as file,
    ):
        for group in _groups(table):
            columns = _columns(group, spec)
            for number, name in enumerate(vectors):
                values = [row.vectors if spec.layers is None else row.vectors[number] for _, row in group]
                flat = np.concatenate([value.reshape(-1) for value in values])
                columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(flat), spec.width)
            file.write_table(pa.table(columns, schema=schema))
    return []


def _vector_names(spec: VectorSpec) -> list[str]:
    return ["vector"] if spec.layers is None else [f"layer_{number}" for number in range(spec.layers)]


def _groups(table: Table) -> Iterator[list[tuple[int, EmbeddedText]]]:
    group: list[tuple[int, EmbeddedText]] = []
    size = 0
    for number, row in enumerate(table.read()):
        group.append((number, row))
        size += row.vectors.nbytes
        if size >= GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def _columns(group: list[tuple[int, EmbeddedText]], spec: VectorSpec) -> dict[str, Any]:
    if spec.pooled:
        return {
            "sentence": [number for number, _ in group],
            "tokens": [_encodable(row.tokens) for _, row in group],
            "offsets": [row.offsets for _, row in group],
        }
    places = [place for _, row in group for place in row.offsets]
    return {
        "sentence": np.repeat([number for number, _ in group], [len(row.tokens) for _, row in group]),
        "position": np.concatenate([np.arange(len(row.tokens), dtype=np.int32) for _, row in group]),
        "token": [token for _, row in group for token in _encodable(row.tokens)],
        "begin": [begin for begin, _ in places],
        "end": [end for _, end in places],
    }


def _encodable(tokens: list[str]) -> list[str]:
    r"""Tokens that UTF-8 can hold: a lone surrogate is escaped, as in \ud800."""
    return [token.encode("utf-8", "backslashreplace").decode("utf-8") for token in tokens]
