"""Columns of pandas, Arrow and Hugging Face datasets need no code of their own."""

import numpy as np
import pandas
import pyarrow
from datasets import Dataset

import bilmo

TEXTS = ["the red cat", "a", "dogs and cats ."]


def test_columns_are_texts(model):
    elmo = bilmo.load(model)
    expected = elmo.embed(TEXTS, pool="mean")
    for column in (pandas.Series(TEXTS), pyarrow.table({"text": TEXTS})["text"], Dataset.from_dict({"t": TEXTS})["t"]):
        np.testing.assert_array_equal(elmo.embed(column, pool="mean"), expected)


def test_map_over_a_data_set(model):
    elmo = bilmo.load(model)
    rows = Dataset.from_dict({"tokens": [text.split() for text in TEXTS], "text": TEXTS})
    found = rows.map(lambda some: {"vectors": elmo.embed(some["tokens"])}, batched=True, batch_size=2)
    for row, expected in zip(found, elmo.embed([text.split() for text in TEXTS]), strict=True):
        np.testing.assert_allclose(np.array(row["vectors"]), expected, atol=1e-6)
    pooled = rows.map(lambda some: {"vector": elmo.embed(some["text"], pool="mean")}, batched=True)
    np.testing.assert_allclose(np.array(pooled["vector"]), elmo.embed(TEXTS, pool="mean"), atol=1e-6)
