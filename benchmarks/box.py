"""The models that come with bilmo, made and judged: `python benchmarks/box.py en FOLDER`, or `zh`.

About one whole document (book, article, chapter) in fifty is put aside before anything is trained. The rest is trained
on by the shipped recipe of the same name; a run that was stopped goes on. The model is written to FOLDER/box in
float16, and judged as it is there: on what was put aside, beside a 5-gram model that has read the same text; and by
the neighbours of words that are drawn by frequency alone. What was found goes to the model's card and to results.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
import zlib
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from ngrams import KneserNey, perplexity

from bilmo.embed.embedder import Embedder, settled
from bilmo.embed.load import load
from bilmo.embed.perplexity import score
from bilmo.formats import open as layouts
from bilmo.ids.vocab import Vocab
from bilmo.sense import neighbours, uses
from bilmo.store.model_folder import CARD
from bilmo.text.files import lines
from bilmo.text.split import splitter
from bilmo.train import recipe as recipes
from bilmo.train.corpus import Corpus
from bilmo.train.events import Evaluation
from bilmo.train.run import train
from text import DATA

HERE = Path(__file__).parent
TEXTS = {"en": ("novels-en", "wiki-en"), "zh": ("hongloumeng-zh", "sanguo-zh", "shuihu-zh")}
CHAPTER = re.compile("第[〇零一二三四五六七八九十百]+回 ")
ONE_IN, WHICH = 50, 2
BANDS = ((1, 100), (100, 1_000), (1_000, 5_000), (5_000, 10_000), (10_000, 20_000))
DRAWN, NEAR = 6, 8
"""Words drawn from each band of ranks by frequency, and neighbours of each."""


def documents(name: str) -> Iterator[list[str]]:
    """Books and articles end with an empty line, chapters begin with their heading."""
    found: list[str] = []
    for line in lines(DATA / "text" / f"{name}.txt.xz"):
        if found and (not line.strip() or CHAPTER.match(line)):
            yield found
            found = []
        if line.strip():
            found.append(line)
    if found:
        yield found


def put_aside(names: tuple[str, ...], folder: Path) -> None:
    """Write each text without the documents that are put aside, and those on their own."""
    for name in names:
        if (folder / "unseen" / f"{name}.txt").exists():
            continue
        parts: dict[str, list[str]] = {"text": [], "unseen": []}
        for document in documents(name):
            part = "unseen" if zlib.crc32(document[0].encode()) % ONE_IN == WHICH else "text"
            parts[part] += document
        for part, rows in parts.items():
            (folder / part).mkdir(parents=True, exist_ok=True)
            (folder / part / f"{name}.txt").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def trained(name: str, folder: Path) -> None:
    """Train the model to its end, as by `bilmo train FOLDER/text -o FOLDER/model --recipe NAME`."""
    for event in train([folder / "text"], folder / "model", recipes.read(name)):
        if isinstance(event, Evaluation):
            print(f"step {event.number:,}: held-out perplexity {event.mean:.1f}", flush=True)


def boxed(name: str, folder: Path) -> Path:
    """The model as it is shipped: float16, with its settled start, card and curve."""
    box = folder / "box" / name
    shutil.rmtree(box, ignore_errors=True)
    box.parent.mkdir(exist_ok=True)
    layouts.write(settled(layouts.read(folder / "model")), box, "bilmo", "float16")
    shutil.copy(folder / "model" / "curve.svg", box)
    return box


def unseen(name: str, folder: Path) -> dict[str, list[list[str]]]:
    """Sentences of the documents that were put aside, by text."""
    split = splitter(recipes.read(name).text.lang)
    return {
        text: [sentence for line in lines(folder / "unseen" / f"{text}.txt") for sentence in split(line)]
        for text in TEXTS[name]
    }


def by_5_grams(vocab: Vocab, name: str, folder: Path) -> dict[str, float]:
    """Perplexity of a 5-gram model of the same text and vocabulary; it takes minutes, so it is remembered."""
    known = folder / "5-grams.json"
    if not known.exists():
        model = KneserNey.of(Corpus(folder / "model" / "training" / "corpus"), vocab)
        found = {text: perplexity(model, some, vocab) for text, some in unseen(name, folder).items()}
        known.write_text(json.dumps(found), encoding="utf-8")
    return dict(json.loads(known.read_text(encoding="utf-8")))


def judged(elmo: Embedder, name: str, folder: Path) -> list[str]:
    """Perplexity on each unseen text, and that of a 5-gram model over the same words."""
    vocab = elmo.bundle.vocab
    assert vocab is not None
    plain = by_5_grams(vocab, name, folder)
    rows = ["| unseen text | words | unknown | forward | backward | 5-grams, forward |", "|---|---|---|---|---|---|"]
    short = []
    for text, sentences in unseen(name, folder).items():
        found = score(elmo, sentences)
        forward, backward = found.perplexity["forward"], found.perplexity["backward"]
        share = found.unknown / found.words
        rows.append(
            f"| {text} | {found.words:,} | {share:.1%} | **{forward:.1f}** | {backward:.1f} | {plain[text]:.1f} |"
        )
        short.append(f"{text} {forward:.0f}")
        print(rows[-1], flush=True)
    return [f"| what | value |\n|---|---|\n| perplexity on unseen text | {', '.join(short)} |\n", *rows]


def near(elmo: Embedder) -> list[str]:
    """Neighbours of words that chance has drawn, a band of frequency after the other."""
    vectors = uses.of_vocabulary(elmo, BANDS[-1][1])
    rows = ["| rank | word | nearest words |", "|---|---|---|"]
    for first, last in BANDS:
        words = [word for word in vectors.words[first - 1 : last] if word.isalpha()]
        for word in sorted(random.Random(1).sample(words, DRAWN), key=words.index):
            found = " ".join(other for other, _ in neighbours.nearest(vectors, word, NEAR))
            rows.append(f"| {vectors.words.index(word) + 1:,} | {word} | {found} |")
    return rows


JUDGED = """## Judged on text that nobody trained on

Whole documents, about one in fifty, were put aside before training. Perplexity is by the full softmax over isolated
sentences; every word and one boundary a sentence counts, unknown words as `<UNK>`. The last column is a 5-gram model
(interpolated, modified Kneser-Ney) that has read all of the training text, with the same vocabulary and words.
"""


def main(name: str, folder: Path) -> None:
    """Text, model, judgement."""
    put_aside(TEXTS[name], folder)
    trained(name, folder)
    box = boxed(name, folder)
    elmo = load(box)
    tables = "\n".join([*judged(elmo, name, folder), ""])
    limits = (HERE / "limits" / f"{name}.md").read_text(encoding="utf-8")
    with (box / CARD).open("a", encoding="utf-8") as card:
        card.write(f"\n{JUDGED}\n{tables}\n{limits}")
    words = "\n".join(near(elmo))
    (HERE / "results" / f"{name}.md").write_text(
        f"# The model `{name}`\n\n{date.today()}, made by `python benchmarks/box.py {name} FOLDER`.\n\n"
        f"{JUDGED}\n{tables}\n"
        f"## Neighbours\n\nAs `bilmo similar` finds them, among the {BANDS[-1][1]:,} most frequent words; the "
        f"words are drawn by frequency band, not by hand.\n\n{words}\n",
        encoding="utf-8",
    )
    print(f"{box}: written")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
