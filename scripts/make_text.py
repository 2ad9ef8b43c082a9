"""Prepare the text that the included models are trained on: `python scripts/make_text.py en FOLDER`, or `zh`.

About one whole document (book, article, chapter) in fifty is held out before anything is trained. The rest is written
to FOLDER/text, one file per kind of text, and the held-out documents to FOLDER/unseen. Documents of the newer texts
that share a run of ten words with a held-out document or with the test set of a task are dropped; the counts go to
FOLDER/text.json. The word vectors that the English model reads beside the characters are unpacked to FOLDER. The
sources are found through BILMO_DATA.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

DATA = Path(os.environ.get("BILMO_DATA", Path(__file__).parents[2] / "shared" / "data"))
OLDER = {"en": ("novels-en", "wiki-en"), "zh": ("hongloumeng-zh", "sanguo-zh", "shuihu-zh")}
"""Texts of the first models. Their held-out documents stay the same, and nothing else is dropped from them."""
NEWER = {
    "en": ("wiki-good-en", "openstax-en", "wikinews", "acl_titles"),
    "zh": ("zh-wiki", "zh-literature", "zh-laws_gov", "zh-essays_tech", "zh-dialogue_speech"),
}
VECTORS = {"en": "glove.6B.50d.top50k.txt"}
"""Word vectors at the input of a model, beside its characters."""
TESTS = {"en": "tasks/*/*", "zh": "tasks/zh_*/*"}
NOT_TESTS = re.compile(r"train|dev|trial|readme|licen|semcor|index|key|word_similarity|zh_|\.gold|candidates", re.I)
"""Files of task data that hold no text to be tested on."""
COLUMN = {"wikigold": 0, "wnut17": 0, "conll2000": 0, "ud_english_ewt": 1, "coref_litbank": 3}
"""Where the word stands, in data with one word per line."""
CHAPTER = re.compile("第[〇零一二三四五六七八九十百]+回 ")
WORD = {"en": re.compile(r"[^\W_]+"), "zh": re.compile(r"[a-z0-9]+|[^\W_]")}
"""What counts as a word when passages are compared; a Chinese character is one by itself."""
PASSAGE = 10
ONE_IN, WHICH = 50, 2
"""Which documents are held out, by a checksum of their first line."""


@dataclass
class Counts:
    """Documents of one kind of text."""

    kept: int = 0
    held_out: int = 0
    dropped: int = 0


def opened(path: Path) -> Iterator[str]:
    """The lines of a file, packed or not."""
    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
        for line in file:
            yield line.decode("utf-8", "replace").rstrip("\n")  # some test sets are not all UTF-8


def documents(name: str) -> Iterator[list[str]]:
    """Paragraphs of each book, article or chapter; those of JSON lines in their order."""
    if (DATA / "generate" / name).is_dir():
        for line in opened(DATA / "generate" / name / "train.jsonl.xz"):
            entry = json.loads(line)
            yield entry["paras"] if "paras" in entry else [entry["abstract"]]
        return
    found: list[str] = []
    for line in opened(DATA / "text" / f"{name}.txt.xz"):
        if found and (not line.strip() or CHAPTER.match(line)):
            yield found
            found = []
        if line.strip():
            found.append(line)
    if found:
        yield found


def is_held_out(document: list[str]) -> bool:
    """Whether a document is never trained on."""
    return zlib.crc32(document[0].encode()) % ONE_IN == WHICH


def passages(lines: Iterable[str], language: str) -> Iterator[int]:
    """A hash of every run of ten words; runs do not cross lines."""
    for line in lines:
        words = WORD[language].findall(line.lower())
        for at in range(len(words) - PASSAGE + 1):
            yield hash(tuple(words[at : at + PASSAGE]))


def test_texts(language: str) -> Iterator[str]:
    """The test sets of the tasks: lines of text, or one line per file where words stand in a column."""
    for path in sorted(DATA.glob(TESTS[language])):
        if not path.is_file() or (language == "en" and NOT_TESTS.search(str(path.relative_to(DATA)))):
            continue
        column = COLUMN.get(path.parent.name)
        if column is None:
            text = "\n".join(opened(path))
            yield from re.sub("<[^>]*>\n?", " ", text).splitlines()  # XML has one word per line
        else:
            yield " ".join(row.split()[column] for row in opened(path) if len(row.split()) > column)


def main(language: str, folder: Path) -> None:
    """Write the text to train on and the text to evaluate on."""
    counts: dict[str, Counts] = {}
    known = set(passages(test_texts(language), language))
    for part in ("text", "unseen"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for name in (*OLDER[language], *NEWER[language]):  # the held-out documents of all texts first
        counts[name] = Counts()
        with (folder / "unseen" / f"{name}.txt").open("w", encoding="utf-8") as file:
            for document in filter(is_held_out, documents(name)):
                counts[name].held_out += 1
                file.writelines(f"{line}\n" for line in document)
                known.update(passages(document, language))
    for name in (*OLDER[language], *NEWER[language]):
        with (folder / "text" / f"{name}.txt").open("w", encoding="utf-8") as file:
            for document in documents(name):
                if is_held_out(document):
                    continue
                if name in NEWER[language] and not known.isdisjoint(passages(document, language)):
                    counts[name].dropped += 1
                    continue
                counts[name].kept += 1
                file.writelines(f"{line}\n" for line in document)
        print(f"{name}: {counts[name]}", flush=True)
    facts = {name: asdict(count) for name, count in counts.items()}
    (folder / "text.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    if language in VECTORS:
        with (
            lzma.open(DATA / "vectors" / f"{VECTORS[language]}.xz") as packed,
            (folder / VECTORS[language]).open("wb") as file,
        ):
            shutil.copyfileobj(packed, file)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
