"""The program of `make demo`: one word in two senses, similar words, and the training of a small model.

The results are printed, and written to demo/report.html, a page that needs no network.
"""

from __future__ import annotations

import html
import json
import math
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import bilmo
from bilmo.embed.word_space import whitened

HERE, OUT = Path(__file__).parent, Path("demo")
ENGLISH = ("river", "king", "seven", "quickly", "London", "angry")
CHINESE = ("宝玉", "曹操", "林冲", "明日", "大怒", "三")
NEXT = (
    'bilmo embed en "He sat on the bank."',
    "bilmo similar zh 黛玉",
    "bilmo train YOUR_TEXT.txt -o my-model --minutes 10",
)
Floats = NDArray[np.float32]


# One word, two senses


def senses(elmo: bilmo.Embedder) -> str:
    """Which occurrences of a word are nearest to each other, and a chart of all of them."""
    rows = [line.split("\t") for line in (HERE / "senses.tsv").read_text(encoding="utf-8").splitlines()]
    parts = []
    for word in dict.fromkeys(word for _, word, _ in rows):
        kinds, texts = zip(*((kind, text) for kind, other, text in rows if other == word), strict=True)
        sentences = [text.split() for text in texts]
        vectors = elmo.embed(sentences, mix="top")
        here = np.stack([row[s.index(word)] for row, s in zip(vectors, sentences, strict=True)])
        parts.append(two_senses(word, kinds, texts, whitened(here)))
    return "".join(parts)


def two_senses(word: str, kinds: Sequence[str], texts: Sequence[str], values: Floats) -> str:
    """The first occurrence of each sense with the occurrences nearest to it."""
    cosines = values @ values.T
    np.fill_diagonal(cosines, -2)
    right = sum(kinds[k] == kinds[n] for k, n in enumerate(cosines.argmax(axis=1)))
    result = f"For {right} of {len(texts)} sentences, the nearest sentence has the same sense."
    print(f"\n{word}, in two senses. {result}")
    shown = ""
    for k in sorted(kinds.index(kind) for kind in set(kinds)):
        nearest = np.argsort(-cosines[k])[:3]
        print(f"  {texts[k]}\n" + "\n".join(f"    {cosines[k, n]:5.2f}  {texts[n]}" for n in nearest))
        items = "".join(f"<li>{marked(texts[n], word)} <small>{cosines[k, n]:.2f}</small></li>" for n in nearest)
        shown += f"<p><b>{marked(texts[k], word)}</b></p><ul>{items}</ul>"
    return f"<h3>{word}</h3><p>{result}</p><div class=pair><div>{shown}</div>{scatter(kinds, texts, values)}</div>"


def marked(text: str, word: str) -> str:
    """A sentence with the word highlighted."""
    return html.escape(text).replace(f" {word} ", f" <mark>{word}</mark> ")


def scatter(kinds: Sequence[str], texts: Sequence[str], values: Floats) -> str:
    """A chart of the two directions in which the occurrences differ most."""
    _, _, directions = np.linalg.svd(values - values.mean(axis=0), full_matrices=False)
    places = (values @ directions[:2].T).T
    x, y = (20 + 280 * (row - row.min()) / (row.max() - row.min()) for row in places)
    names = sorted(set(kinds), key=kinds.index)
    dots = "".join(
        f'<circle class="kind{names.index(kind)}" cx="{a:.0f}" cy="{b:.0f}" r="7"><title>{html.escape(text)}</title>'
        "</circle>"
        for kind, text, a, b in zip(kinds, texts, x, y, strict=True)
    )
    key = " &nbsp; ".join(f'<span class="kind{n}">&#9679; {name}</span>' for n, name in enumerate(names))
    return f'<figure><svg viewBox="0 0 320 320" role="img">{dots}</svg><figcaption>{key}</figcaption></figure>'


# Similar words


def near(name: str, words: Sequence[str]) -> str:
    """The nearest words of some words."""
    elmo = bilmo.load(name)
    rows = ""
    print(f"\nNearest words in the model `{name}`:")
    for word in words:
        found = [other for other, _ in elmo.most_similar(word, topn=7)]
        print(f"  {word}: {'  '.join(found)}")
        rows += f"<tr><th>{word}</th><td>{html.escape('   '.join(found))}</td></tr>"
    return f"<table>{rows}</table>"


# Your own model

NOUNS = {"one": "cat dog king child river horse doctor".split(), "many": "cats dogs kings children rivers".split()}
VERBS = {"one": "sees loves hears follows forgets".split(), "many": "see love hear follow forget".split()}
ADJECTIVES = "old small white happy quiet".split()


def made_text(sentences: int) -> tuple[str, float]:
    """Sentences of a made-up grammar, and the lowest possible perplexity on them."""
    chance = random.Random(1)
    nats, steps = 0.0, 0

    def drawn(options: Sequence[str]) -> str:
        nonlocal nats
        nats += math.log(len(options))
        return chance.choice(options)

    lines = []
    for _ in range(sentences):
        words: list[str] = []
        for place in ("subject", "object"):
            number = drawn(("one", "many"))
            words.append("the")
            if drawn(("without", "with")) == "with":
                words.append(drawn(ADJECTIVES))
            words.append(drawn(NOUNS[number]))
            if place == "subject":
                words.append(drawn(VERBS[number]))
        lines.append(" ".join([*words, "."]))
        steps += len(words) + 2
    return "".join(f"{line}\n" for line in lines), math.exp(nats / steps)


def own_model() -> str:
    """Train on made-up text with the command that a user would type, and show the progress."""
    text, least = made_text(4000)
    (OUT / "text.txt").write_text(text, encoding="utf-8")
    first = text.splitlines()[0]
    command = ["train", str(OUT / "text.txt"), "-o", str(OUT / "model"), "--recipe", "tiny"]
    print(f"\nYour own model: 4,000 sentences of a made-up grammar, such as: {first}")
    print(f"$ bilmo {' '.join(command)}", flush=True)
    subprocess.run([sys.executable, "-m", "bilmo", *command], check=True)
    events = [json.loads(line) for line in (OUT / "model" / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    reached = min(event["mean"] for event in events if "mean" in event)  # evaluations
    result = (
        f"Held-out perplexity {reached:.2f}; the lowest possible is {least:.2f}, because the grammar draws at random."
    )
    print(result)
    curve = (OUT / "model" / "curve.svg").read_text(encoding="utf-8")
    return (
        f"<p>4,000 sentences of a made-up grammar, such as <i>{first}</i></p><p><code>bilmo {' '.join(command)}</code>"
        f"</p>{curve}<p>{result}</p>"
    )


STYLE = """
:root { color-scheme: light dark; --ink: #1c1b1a; --paper: #fbfaf7; --soft: #8883; --a: #b4471d; --b: #2566ad; }
@media (prefers-color-scheme: dark) { :root { --ink: #eceae6; --paper: #191817; --a: #f2a07a; --b: #8cbcf2; } }
body { font: 17px/1.55 Georgia, "Noto Serif CJK SC", serif; color: var(--ink); background: var(--paper);
       max-width: 58rem; margin: 3rem auto; padding: 0 1.2rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 3rem; border-top: 1px solid var(--soft); padding-top: 1.2rem; }
mark { background: none; color: var(--a); font-weight: bold; } ul { padding-left: 1.2rem; } li { margin: .25rem 0; }
small { opacity: .65; } .pair { display: grid; grid-template-columns: 3fr 2fr; gap: 2rem; align-items: start; }
figure { margin: 0; text-align: center; } figure circle { opacity: .85; } svg { max-width: 100%; height: auto; }
figure svg { border: 1px solid var(--soft); border-radius: 6px; width: 100%; }
svg .kind0 { fill: var(--a); } svg .kind1 { fill: var(--b); } span.kind0 { color: var(--a); }
span.kind1 { color: var(--b); } table { border-collapse: collapse; white-space: pre-wrap; }
th, td { text-align: left; padding: .3rem 1.4rem .3rem 0; border-top: 1px solid var(--soft); vertical-align: top; }
th { color: var(--a); } code { background: var(--soft); padding: .15rem .4rem; border-radius: 4px; }
@media (max-width: 45rem) { .pair { grid-template-columns: 1fr; } }
"""


def page(parts: Sequence[tuple[str, str]]) -> str:
    """The report as one file that loads nothing."""
    body = "".join(f"<h2>{title}</h2>{part}" for title, part in parts)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>bilmo</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f"<h1>bilmo</h1><p>Word vectors that depend on the sentence.</p>{body}</html>\n"
    )


def main() -> None:
    """Print everything, then write the report."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    print("bilmo: word vectors that depend on the sentence. Two models are included: en and zh.")
    parts = [
        ("One word, two senses", senses(bilmo.load("en"))),
        ("Similar English words", near("en", ENGLISH)),
        ("Similar Chinese names and words", near("zh", CHINESE)),
        ("Your own model", own_model()),
        ("Try next", "".join(f"<p><code>{html.escape(command)}</code></p>" for command in NEXT)),
    ]
    (OUT / "report.html").write_text(page(parts), encoding="utf-8")
    print(f"\nThe same as a page: {(OUT / 'report.html').resolve().as_uri()}\n\nTry next:")
    print("\n".join(f"  .venv/bin/{command}" for command in NEXT))
    print("\nA page to play with, at http://127.0.0.1:8080 while this runs:\n  .venv/bin/bilmo serve")


if __name__ == "__main__":
    main()
