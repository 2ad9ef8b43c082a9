"""Classify questions with three Keras models with ELMo, and show accuracy, precision, recall and F1 of each.

    KERAS_BACKEND=torch python examples/keras_models.py [MODEL]

1. The weighted sum of the layers beside word embeddings of the task, and an LSTM.
2. The weighted sum alone, and an LSTM.
3. The mean of all layers and all words, and a dense layer.

Needs the extras `keras` and `sklearn`.
"""

import sys
from pathlib import Path

import keras
import numpy as np
from keras import layers
from sklearn.metrics import accuracy_score, precision_recall_fscore_support
from sklearn.model_selection import train_test_split

from bilmo.plug.keras import ElmoLayer

EPOCHS, UNITS = 20, 32


def read(path: Path) -> tuple[list[list[str]], list[str]]:
    """Questions as lists of words, and their labels."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [text.replace("?", " ?").split() for _, text in rows], [label for label, _ in rows]


def with_words(elmo: ElmoLayer, ids: keras.KerasTensor, words: keras.KerasTensor, vocabulary: int) -> keras.Model:
    """The first model."""
    embedded = layers.Embedding(vocabulary, UNITS, mask_zero=True)(words)
    both = layers.Concatenate()([embedded, elmo(ids)])
    return keras.Model([ids, words], layers.LSTM(UNITS, dropout=0.2)(layers.BatchNormalization()(both)))


def alone(elmo: ElmoLayer, ids: keras.KerasTensor) -> keras.Model:
    """The second model."""
    return keras.Model(ids, layers.LSTM(UNITS, dropout=0.2)(layers.BatchNormalization()(elmo(ids))))


def pooled(elmo: ElmoLayer, ids: keras.KerasTensor) -> keras.Model:
    """The third model."""
    mean = layers.GlobalAveragePooling1D()(elmo(ids))
    return keras.Model(ids, layers.Dense(UNITS, activation="relu")(mean))


def main(model: str = "en") -> None:
    """Train and measure the three models."""
    keras.utils.set_random_seed(0)
    texts, labels = read(Path(__file__).with_name("questions.tsv"))
    names = sorted(set(labels))
    numbers = {word: k for k, word in enumerate(sorted({word for text in texts for word in text}), start=1)}
    words = np.zeros((len(texts), max(map(len, texts))), dtype="int32")  # 0 is padding
    for row, text in zip(words, texts, strict=True):
        row[: len(text)] = [numbers[word] for word in text]
    y = np.array([names.index(label) for label in labels])
    elmo = ElmoLayer(model)
    ids = elmo.ids(texts)
    train, test = train_test_split(np.arange(len(texts)), test_size=0.25, random_state=0, stratify=y)
    spelled, numbered = keras.Input(ids.shape[1:], dtype="int32"), keras.Input(words.shape[1:], dtype="int32")
    for name, body, inputs in (
        ("weighted sum and words", with_words(elmo, spelled, numbered, len(numbers) + 1), [ids, words]),
        ("weighted sum", alone(ElmoLayer(model), spelled), [ids]),
        ("fixed mean", pooled(ElmoLayer(model, mix="mean"), spelled), [ids]),
    ):
        made = keras.Model(body.inputs, layers.Dense(len(names), activation="softmax")(body.output))
        made.compile(keras.optimizers.Adam(0.005), "sparse_categorical_crossentropy")
        made.fit([one[train] for one in inputs], y[train], epochs=EPOCHS, batch_size=8, verbose=0)
        found = made.predict([one[test] for one in inputs], verbose=0).argmax(axis=1)
        precision, recall, f1, _ = precision_recall_fscore_support(y[test], found, average="macro", zero_division=0)
        print(f"{name:22s}  accuracy {accuracy_score(y[test], found):.2f}", end="  ")
        print(f"precision {precision:.2f}  recall {recall:.2f}  F1 {f1:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
