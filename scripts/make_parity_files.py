"""Write tests/parity: small random models in the old layouts, with the vectors that the old systems give for them.

Each part is made with the Python of the old system it compares with. Every environment comes from PyPI:

    part        packages                                              the old system
    allennlp    torch h5py, then --no-deps allennlp==2.10.1           AllenNLP's Elmo
    manylangs   torch h5py overrides==3.1.0 elmoformanylangs==0.0.4 ELMoForManyLangs
    bilmtf      simple_elmo==0.9.2 tensorflow-cpu tf_keras            bilm-tf, as simple_elmo packs it for TensorFlow 2

    PYTHON scripts/make_parity_files.py PART

A part is a folder: the model's own files, `sentences.json`, and `vectors.npz` with one array (layers, tokens, width)
per sentence. `zero0`, `zero1`, ...: every sentence starts from a state of zeros. `carry0`, ...: sentences in batches of
three; each row starts from the state in which that row of the previous batch ended. bilmtf also has `log_probs.json`:
the log-probability of every token, each sentence starting from zeros.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
OUT = ROOT / "tests" / "parity"
ROWS = 3
SENTENCES = [
    ["The", "cat", "sat", "on", "the", "mat", "."],
    ["naïve", "漢字", "!"],
    ["Pneumonoultramicroscopicsilicovolcanoconiosis-and-a-tail-that-is-cut", "?"],
    ["cat"],
    ["The", "the", "THE", "tHe"],
    ["3.14", "—", "e.g.", "U.S."],
]
LSTM = {"use_skip_connections": True, "projection_dim": 8, "cell_clip": 3, "proj_clip": 3, "dim": 16, "n_layers": 2}
FILTERS = [[1, 4], [2, 8], [3, 8]]
CHARACTERS = {
    "activation": "relu",
    "filters": FILTERS,
    "n_highway": 1,
    "embedding": {"dim": 4},
    "n_characters": 262,
    "max_characters_per_token": 50,
}


def write_json(path: Path, content: object) -> None:
    """Write JSON that a person can read."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def finish(folder: Path, zero: list[np.ndarray], carry: list[np.ndarray]) -> None:
    """Write the sentences and the vectors beside the model."""
    write_json(folder / "sentences.json", SENTENCES)
    named = {f"zero{k}": vectors for k, vectors in enumerate(zero)} | {f"carry{k}": v for k, v in enumerate(carry)}
    arrays: dict[str, Any] = {name: value.astype(np.float32) for name, value in named.items()}
    np.savez_compressed(folder / "vectors.npz", **arrays)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{folder}: {len(zero)} sentences, {size / 1000:.0f} KB")


def batches() -> list[list[list[str]]]:
    """The sentences in batches of three."""
    return [SENTENCES[at : at + ROWS] for at in range(0, len(SENTENCES), ROWS)]


def allennlp(folder: Path) -> None:
    """options.json and weights.hdf5 with random weights; vectors by AllenNLP's Elmo."""
    import h5py
    import torch

    draw = np.random.default_rng(18)
    filters = sum(number for _, number in FILTERS)
    width, cells = LSTM["projection_dim"], LSTM["dim"]
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (261, 4)}
    for k, (length, number) in enumerate(FILTERS):
        shapes |= {f"CNN/W_cnn_{k}": (1, length, 4, number), f"CNN/b_cnn_{k}": (number,)}
    for name in ("carry", "transform"):
        shapes |= {f"CNN_high_0/W_{name}": (filters, filters), f"CNN_high_0/b_{name}": (filters,)}
    shapes |= {"CNN_proj/W_proj": (filters, width), "CNN_proj/b_proj": (width,)}
    for direction in (0, 1):
        for layer in (0, 1):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes |= {
                f"{cell}/W_0": (2 * width, 4 * cells),
                f"{cell}/B": (4 * cells,),
                f"{cell}/W_P_0": (cells, width),
            }
    write_json(folder / "options.json", {"lstm": LSTM, "char_cnn": CHARACTERS})
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, shape in shapes.items():
            file.create_dataset(name, data=(draw.standard_normal(shape) * 0.4).astype(np.float32))

    sys.path.insert(0, str(ROOT / "benchmarks"))
    import worker_allennlp

    worker_allennlp.install()
    from allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper
    from allennlp.modules.elmo import Elmo

    mapper = ELMoCharacterMapper()

    def embed(elmo: Any, sentences: list[list[str]]) -> list[np.ndarray]:
        ids = torch.zeros(len(sentences), max(map(len, sentences)), 50, dtype=torch.long)
        for row, sentence in enumerate(sentences):
            for place, word in enumerate(sentence):
                ids[row, place] = torch.tensor(mapper.convert_word_to_char_ids(word))
        with torch.no_grad():
            layers = elmo._elmo_lstm(ids)["activations"]
        return [np.stack([x[k, 1 : 1 + len(s)].numpy() for x in layers]) for k, s in enumerate(sentences)]

    def fresh() -> Any:  # in a state of zeros; from then on it carries its state from call to call
        return Elmo(str(folder / "options.json"), str(folder / "weights.hdf5"), 1, dropout=0.0).eval()

    carrying = fresh()
    zero = [embed(fresh(), [sentence])[0] for sentence in SENTENCES]
    finish(folder, zero, [vectors for some in batches() for vectors in embed(carrying, some)])


def manylangs(folder: Path) -> None:
    """An ELMoForManyLangs folder whose random state dictionaries its own classes save; vectors by its Embedder."""
    import torch
    from elmoformanylangs import Embedder
    from elmoformanylangs.frontend import Model
    from elmoformanylangs.modules.embedding_layer import EmbeddingLayer

    config = {
        "encoder": {"name": "elmo", "projection_dim": 8, "cell_clip": 3, "proj_clip": 3, "dim": 16, "n_layers": 2},
        "token_embedder": {
            "name": "cnn",
            "activation": "relu",
            "filters": FILTERS,
            "n_highway": 1,
            "word_dim": 6,
            "char_dim": 4,
            "max_characters_per_token": 50,
        },
        "classifier": {"name": "sampled_softmax", "n_samples": 8192},
        "dropout": 0.1,
    }
    marks = ["<oov>", "<bos>", "<eos>", "<pad>"]
    words = [*marks, "the", "The", "cat", "sat", ".", "漢字"]
    characters = [*marks, "<bow>", "<eow>", *sorted({c for s in SENTENCES[:4] for word in s for c in word})]
    write_json(folder / "config.json", {"config_path": "/an/author's/folder/cnn_tiny.json", "seed": 1})
    write_json(folder / "cnn_tiny.json", config)
    for name, entries in (("word.dic", words), ("char.dic", characters)):
        (folder / name).write_text("".join(f"{e}\t{k}\n" for k, e in enumerate(entries)), encoding="utf-8")
    torch.manual_seed(18)
    ids = [{entry: k for k, entry in enumerate(entries)} for entries in (words, characters)]
    model = Model(config, EmbeddingLayer(6, ids[0], fix_emb=False), EmbeddingLayer(4, ids[1], fix_emb=False), False)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)
    torch.save(model.token_embedder.state_dict(), folder / "token_embedder.pkl")
    torch.save(model.encoder.state_dict(), folder / "encoder.pkl")
    # A new embedder has a state of zeros; after that, it carries the state from call to call.
    zero = [Embedder(str(folder)).sents2elmo([sentence], output_layer=-2)[0] for sentence in SENTENCES]
    finish(folder, zero, [])


def bilmtf(folder: Path) -> None:
    """A checkpoint with a softmax, written by TensorFlow's Saver; vectors by bilm-tf from its own dump of them."""
    os.environ |= {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    import tensorflow as tf
    from simple_elmo import ElmoModel
    from simple_elmo.training import LanguageModel, dump_weights

    v1 = tf.compat.v1
    v1.disable_eager_execution()
    words = ["<S>", "</S>", "<UNK>", "the", "The", "cat", "sat", ".", "漢字"]
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    options = {
        "lstm": LSTM,
        "char_cnn": CHARACTERS | {"n_characters": 261},
        "bidirectional": True,
        "dropout": 0.1,
        "all_clip_norm_val": 10.0,
        "batch_size": 1,
        "unroll_steps": 1,
        "n_tokens_vocab": len(words),
        "n_negative_samples_batch": 4,
        "sample_softmax": False,
    }
    write_json(folder / "options.json", options)
    draw = np.random.default_rng(19)
    with v1.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("lm"):
            model = LanguageModel(options, False)
        step = v1.get_variable("global_step", shape=(), dtype=tf.int64, trainable=False)
        v1.train.AdagradOptimizer(0.2).minimize(model.total_loss)  # for its slots, as training leaves them
        session.run(v1.global_variables_initializer())
        session.run(step.assign(7))
        for variable in v1.trainable_variables():
            variable.load((draw.standard_normal(variable.shape.as_list()) * 0.4).astype(np.float32), session)
        v1.train.Saver().save(session, str(folder / "model.ckpt"), global_step=7, write_meta_graph=False)
    write_json(folder / "log_probs.json", [log_probs(folder, options, sentence) for sentence in SENTENCES])
    with tempfile.TemporaryDirectory() as name:
        dumped = Path(name)
        for file in folder.iterdir():
            shutil.copy(file, dumped)
        (dumped / "checkpoint").write_text(f'model_checkpoint_path: "{dumped}/model.ckpt-7"\n', encoding="utf-8")
        with v1.Graph().as_default():
            dump_weights(str(dumped), str(dumped / "model.hdf5"))
        write_json(dumped / "options.json", options | {"char_cnn": CHARACTERS})
        found: dict[str, list[np.ndarray]] = {}
        for start, groups in {"zero": [[s] for s in SENTENCES], "carry": [SENTENCES]}.items():
            found[start] = []
            for some in groups:  # a new graph and session start from zeros; within one, bilm-tf carries its state
                with v1.Graph().as_default():
                    elmo = ElmoModel()
                    elmo.load(str(dumped), max_batch_size=ROWS)
                    vectors = elmo.get_elmo_vectors(some, warmup=False, layers="all")
                    found[start] += [vectors[k][:, : len(sentence)] for k, sentence in enumerate(some)]
    (folder / "checkpoint").write_text('model_checkpoint_path: "/an/author\'s/folder/model.ckpt-7"\n', encoding="utf-8")
    finish(folder, found["zero"], found["carry"])


def log_probs(folder: Path, options: dict[str, Any], sentence: list[str]) -> dict[str, list[float]]:
    """The log-probability of every token in both directions, by the graph that bilm-tf trains and tests with."""
    import tensorflow as tf
    from simple_elmo.training import LanguageModel, load_vocab

    v1 = tf.compat.v1
    vocab = load_vocab(str(folder / "vocab.txt"), 50)
    targets = [vocab.word_to_id(word) for word in sentence]
    characters = [vocab.word_to_char_ids(word) for word in sentence]
    with v1.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("lm"):
            model = LanguageModel(options | {"unroll_steps": len(sentence)}, False)
        v1.train.Saver().restore(session, str(folder / "model.ckpt-7"))
        scores = [tf.nn.log_softmax(scores) for scores in model.output_scores]
        inputs = {
            model.tokens_characters: [[vocab.bos_chars, *characters[:-1]]],
            model.tokens_characters_reverse: [[vocab.eos_chars, *characters[:0:-1]]],
        }
        forward, backward = session.run(scores, inputs)
    rows = np.arange(len(sentence))
    return {"forward": forward[rows, targets].tolist(), "backward": backward[rows, targets[::-1]][::-1].tolist()}


def main(part: str) -> None:
    """Make one part anew."""
    parts = {"allennlp": allennlp, "manylangs": manylangs, "bilmtf": bilmtf}
    if part not in parts:
        sys.exit(f"unknown part {part!r}; accepted: {', '.join(parts)}")
    folder = OUT / part
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    parts[part](folder)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) == 2 else "")
