"""What users write: text, word vectors, recipes, task data. None of it has a checksum."""

from __future__ import annotations

import gzip
import json
import lzma
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from bilmo.embed.inputs import Inputs
from bilmo.store import vectors_file
from bilmo.tasks.data import columns, labelled
from bilmo.text import dictionary as dictionaries
from bilmo.text.files import all_lines
from bilmo.text.split import detect, splitter
from bilmo.training import recipe
from bilmo.training.build import plan_model
from bilmo.training.recipe import SHIPPED
from fuzz.target import EachFile
from small_runs import RECIPE

TEXT = "He didn't go to www.x.org; she (a.b@c.de) did!\n\nDas ist 3.14 €.\n宝玉听了。黛玉不语！\n"


class TextFiles(EachFile):
    """Text, plain and compressed: read, counted and split in every way."""

    name, share = "text files", 50

    def make(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        data = TEXT.encode()
        packed = {"a.txt": data, "a.gz": gzip.compress(data, mtime=0), "a.xz": lzma.compress(data)}
        for name, content in packed.items():
            (folder / name).write_bytes(content)
        with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name in ("one.txt", "two.txt"):
                archive.writestr(zipfile.ZipInfo(name), data)
        (folder / "b").mkdir()
        (folder / "b" / "one.txt").write_bytes(data)
        (folder / "b" / "two.gz").write_bytes(packed["a.gz"])
        rows = [{"text": "The cat"}, {"text": ["a", "b c"]}]
        (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def read(self, folder: Path) -> object:
        inputs = Inputs((str(folder),), field="text" if folder.suffix == ".jsonl" else None)
        items = list(inputs.items())
        lines = list(all_lines([folder]))
        split = [splitter(how)(line) for how in ("en", "west", "zh", "spaces") for line in lines]
        return inputs.survey(), items, lines, split, detect(lines)


class VectorsFile(EachFile):
    """Word vectors as text, as word2vec's binary form, compressed."""

    name, share = "word vectors", 120

    def make(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        values = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
        words = ("the", "naïve", "漢字", ".")
        rows = [f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, values.tolist(), strict=True)]
        text = "".join(rows).encode()
        binary = [word.encode() + b" " + row.tobytes() for word, row in zip(words, values, strict=True)]
        forms = {"glove.txt": text, "word2vec.txt": b"4 3\n" + text, "word2vec.bin": b"4 3\n" + b"".join(binary)}
        for name, content in (
            *forms.items(),
            ("glove.gz", gzip.compress(text, mtime=0)),
            ("w.xz", lzma.compress(text)),
        ):
            (folder / name).write_bytes(content)

    def read(self, folder: Path) -> object:
        found = vectors_file.read(folder)
        vocab, values = found.table()
        return found.words, found.values.tobytes(), vocab.words, values.tobytes()


class Dictionaries(EachFile):
    """Dictionaries for Chinese text: read, and used to split."""

    name, share = "dictionaries", 20

    def make(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "names.txt").write_text("宝玉\n黛玉 3 nr\n漢字 n\nC语言\nx\n", encoding="utf-8")

    def read(self, folder: Path) -> object:
        found = dictionaries.read(folder)
        lines = [*TEXT.split("\n"), "".join(found.words)]
        split = [splitter("zh", found)(line) for line in lines]
        for line, sentences in zip(lines, split, strict=True):
            assert "".join(token for sentence in sentences for token in sentence) == "".join(line.split())
        return found.words, found.sha256, split


class Recipes(EachFile):
    """Recipes, up to the plan of the network."""

    name, share = "recipes", 100

    def make(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "small.toml").write_text(RECIPE)
        home = Path(recipe.__file__).parent / "recipes"
        for name in SHIPPED:
            (folder / f"{name}.toml").write_bytes((home / f"{name}.toml").read_bytes())

    def read(self, folder: Path) -> object:
        found = recipe.read(str(folder))
        words = ["<S>", "</S>", "<UNK>", "the", "cat"]
        plan = plan_model(found.network, found.text, words, np.ones(5, dtype=np.int64))
        return found, plan.config, plan.parameters()


CLASSES = {
    "a.tsv": "label\tid\ttext\n" + 'pos\t1\tgood film\nneg\t2\tbad, "so bad"\n' * 3,
    "tab.txt": "pos\tgood film\nneg\tbad\n" * 3,
    "space.txt": "pos good film\nneg bad\n" * 3,
    "a.csv": 'label,text\npos,"good, ""very"" good"\nneg,"two\nlines"\n' * 1 + "pos,good\nneg,bad\n" * 3,
    "b.csv": "pos,good\nneg,bad\n" * 3,
    "a.jsonl": '{"label": "pos", "text": "good"}\n{"label": 2, "tokens": ["a", "b c"]}\n' * 2,
}
TAGS = {
    "tags.conll": "Anna B-PER\nLee I-PER\nsaw O\n\nOslo B-LOC\n\n" * 2,
    "tags.tab": "Anna\tx\tB-PER\nsaw\ty\tO\n\nOslo\tz\tB-LOC\n\n",
    "tags.conllu": "# text\n1\tAnna\tAnna\tPROPN\tNNP\t_\t0\troot\t_\t_\n2\tsaw\tsee\tVERB\tVBD\t_\t1\tx\t_\t_\n\n",
    "tags.jsonl": '{"tokens": ["Anna", "saw"], "tags": ["B-PER", "O"]}\n' * 2,
}


class TaskData(EachFile):
    """Labelled texts and tagged sentences in every form, for training and for prediction."""

    name, share = "task data", 150

    def make(self, folder: Path) -> None:
        for name, text in (CLASSES | TAGS).items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        for name in ("classes/pos/1.txt", "classes/pos/2.txt", "classes/neg/1.txt"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("a text\n")

    def read(self, folder: Path) -> object:
        if folder.name in TAGS:
            examples: list[Any] = columns.read_examples(columns.detect_form(folder))
            known = {"B-PER", "I-PER", "O"}.__contains__
            return examples, list(columns.read_sentences(columns.detect_input_form(folder, "auto", known, "")))
        found = labelled.read_examples(labelled.detect_form(folder))
        source = labelled.detect_input_form(folder, "auto", {"pos", "neg"}.__contains__, "space")
        return found, list(labelled.read_texts(source))
