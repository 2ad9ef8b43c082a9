"""Make and evaluate an included model: `python scripts/make_model.py en FOLDER`, or `zh`.

FOLDER is prepared by make_text.py: FOLDER/text has the text to train on, FOLDER/unseen whole documents that are never
trained on. The model is trained with the included recipe of the same name (an interrupted run resumes). The English
model has a second stage: that model was trained on the older texts alone; it is made larger by grow_model.py and
trained further on all texts. The result is written to FOLDER/box in float16. There it is evaluated: by its perplexity
on the unseen documents, next to a 5-gram model of the same text, and by the nearest words of randomly drawn words. The
results go to the model card and to benchmarks/results.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from datetime import date
from pathlib import Path

from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load
from bilmo.embed.loaded import settled
from bilmo.embed.perplexity import score
from bilmo.formats import open as layouts
from bilmo.ids.vocab import MARKS, Vocab
from bilmo.store.model_folder import CARD
from bilmo.text.files import all_lines, lines
from bilmo.text.split import splitter
from bilmo.training import corpus as corpora
from bilmo.training import recipe as recipes
from bilmo.training.corpus import Corpus
from bilmo.training.events import Evaluation
from bilmo.training.recipe import Recipe
from bilmo.training.run import Base, train

HERE = Path(__file__).parent
BENCHMARKS = HERE.parent / "benchmarks"
SECOND = {"en": HERE / "en_second_stage.toml"}
"""Recipes of second stages."""
sys.path += [str(BENCHMARKS), str(HERE)]
from grow_model import grow  # noqa: E402
from make_text import OLDER  # noqa: E402
from ngrams import KneserNey, perplexity  # noqa: E402

BANDS = ((1, 100), (100, 1_000), (1_000, 5_000), (5_000, 10_000), (10_000, 20_000))
DRAWN, NEAREST = 6, 8
"""Words drawn from each band of frequency ranks, and the number of nearest words shown for each."""

EVALUATION = """## Evaluation on unseen text

Whole documents, about one in fifty, were held out before training. Perplexity is computed with the full softmax over
isolated sentences; it counts every word and one boundary per sentence, and unknown words as `<UNK>`. The last column is
a 5-gram model (interpolated, modified Kneser-Ney) of the whole training text, with the same vocabulary and words.
"""


def recipe_of(recipe: str, name: str, folder: Path) -> Recipe:
    """A recipe for the model of this name; word vectors that the recipe names are in the folder."""
    found = recipes.read(recipe)
    vectors = found.network.vectors_file
    if vectors is None:
        return found
    if not (folder / vectors).exists():
        sys.exit(f"{folder}: needs the word vectors {vectors}. Run: python scripts/make_text.py {name} {folder}")
    kinds = found.network.words.removesuffix(str(vectors))
    return recipes.read(recipe, {"words": f"{kinds}{folder / vectors}"})


def train_model(name: str, folder: Path) -> None:
    """Train FOLDER/model to the end, in one stage or two."""
    if name not in SECOND:
        train_stage([folder / "text"], folder / "model", recipe_of(name, name, folder))
        return
    recipe = recipe_of(str(SECOND[name]), name, folder)
    first, words, grown = folder / "first", folder / "words", folder / "grown"
    train_stage([folder / "text" / f"{kind}.txt" for kind in OLDER[name]], first, recipe_of(name, name, folder))
    if not words.exists():
        text = recipe.text
        corpora.build(all_lines([folder / "text"]), text.lang, words, held_out=text.held_out, seed=recipe.train.seed)
    if not grown.exists():
        layouts.write(grow(settled(layouts.read(first)), recipe, Corpus(words)), grown, "bilmo")
    train_stage([folder / "text"], folder / "model", recipe, Base(layouts.read(grown), "grown", add_words=0))


def train_stage(texts: list[Path], model: Path, recipe: Recipe, base: Base | None = None) -> None:
    """One training run, like `bilmo train` or, of a model that is there, `bilmo finetune`."""
    for event in train(texts, model, recipe, base):
        if isinstance(event, Evaluation):
            print(f"{model.name}, step {event.number:,}: held-out perplexity {event.mean:.1f}", flush=True)


def write_box(name: str, folder: Path) -> Path:
    """The model as it is shipped: float16, with its settled start, model card and curve."""
    box = folder / "box" / name
    shutil.rmtree(box, ignore_errors=True)
    box.parent.mkdir(exist_ok=True)
    layouts.write(settled(layouts.read(folder / "model")), box, "bilmo", "float16")
    shutil.copy(folder / "model" / "curve.svg", box)
    return box


def unseen_sentences(name: str, folder: Path) -> dict[str, list[list[str]]]:
    """Sentences of the held-out documents, by kind of text; kinds without any are left out."""
    split = splitter(recipes.read(name).text.lang)
    found = {
        path.stem: [sentence for line in lines(path) for sentence in split(line)]
        for path in sorted((folder / "unseen").glob("*.txt"))
    }
    return {kind: sentences for kind, sentences in found.items() if sentences}


def ngram_perplexities(vocab: Vocab, unseen: dict[str, list[list[str]]], folder: Path) -> dict[str, float]:
    """Perplexity of a 5-gram model of the same text and vocabulary. It takes minutes, so it is stored."""
    stored = folder / "5-grams.json"
    if not stored.exists():
        model = KneserNey.of(Corpus(folder / "model" / "training" / "corpus"), vocab)
        found = {kind: perplexity(model, sentences, vocab) for kind, sentences in unseen.items()}
        stored.write_text(json.dumps(found), encoding="utf-8")
    return dict(json.loads(stored.read_text(encoding="utf-8")))


def perplexity_tables(elmo: Embedder, name: str, folder: Path) -> str:
    """Perplexity on each kind of unseen text, next to that of the 5-gram model."""
    vocab = elmo.bundle.vocab
    assert vocab is not None
    unseen = unseen_sentences(name, folder)
    ngrams = ngram_perplexities(vocab, unseen, folder)
    rows = ["| unseen text | words | unknown | forward | backward | 5-grams, forward |", "|---|---|---|---|---|---|"]
    short = []
    for kind, sentences in unseen.items():
        found = score(elmo, sentences)
        forward, backward = found.perplexity["forward"], found.perplexity["backward"]
        share = found.unknown / found.words
        rows.append(
            f"| {kind} | {found.words:,} | {share:.1%} | **{forward:.1f}** | {backward:.1f} | {ngrams[kind]:.1f} |"
        )
        short.append(f"{kind} {forward:.0f}")
        print(rows[-1], flush=True)
    summary = f"| what | value |\n|---|---|\n| perplexity on unseen text | {', '.join(short)} |\n"
    return "\n".join([summary, *rows, ""])


def nearest_words(elmo: Embedder) -> str:
    """A table of nearest words of words drawn at random from each frequency band."""
    vocab = elmo.bundle.vocab
    assert vocab is not None
    known = vocab.words[len(MARKS) :]
    most = BANDS[-1][1]
    rows = ["| rank | word | nearest words |", "|---|---|---|"]
    for first, last in BANDS:
        words = [word for word in known[first - 1 : last] if word.isalpha()]
        for word in sorted(random.Random(1).sample(words, DRAWN), key=words.index):
            found = " ".join(other for other, _ in elmo.most_similar(word, topn=NEAREST, candidates=most))
            rows.append(f"| {known.index(word) + 1:,} | {word} | {found} |")
    return "\n".join(rows)


def main(name: str, folder: Path) -> None:
    """Train, write, evaluate."""
    if not (folder / "text").is_dir() or not (folder / "unseen").is_dir():
        sys.exit(f"{folder}: needs the folders text and unseen. Run: python scripts/make_text.py {name} {folder}")
    train_model(name, folder)
    box = write_box(name, folder)
    elmo = load(box)
    tables = perplexity_tables(elmo, name, folder)
    limits = (HERE / "cards" / f"{name}.md").read_text(encoding="utf-8")
    card = (box / CARD).read_text(encoding="utf-8").replace(f":{folder}/", ":")  # files are named without the folder
    (box / CARD).write_text(f"{card}\n{EVALUATION}\n{tables}\n{limits}", encoding="utf-8")
    (BENCHMARKS / "results" / f"{name}.md").write_text(
        f"# The model `{name}`\n\n{date.today()}, made by `python scripts/make_model.py {name} FOLDER`.\n\n"
        f"{EVALUATION}\n{tables}\n"
        f"## Nearest words\n\nAs shown by `bilmo similar`, among the {BANDS[-1][1]:,} most frequent words. The words "
        f"are drawn at random from frequency bands.\n\n{nearest_words(elmo)}\n",
        encoding="utf-8",
    )
    print(f"{box}: written")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
