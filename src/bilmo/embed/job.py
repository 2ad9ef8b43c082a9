"""Text of any size to a file of vectors: computed in parts that are kept, so that a run that was stopped goes on.

The run is a generator of events; whoever reads them decides what to show.

Knows: Embedder, inputs, parts, files of vectors. Blind to: the command line.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path

from bilmo import __version__
from bilmo.embed.embedder import All, Embedder, Pool
from bilmo.embed.inputs import Inputs, Item
from bilmo.embed.output import write as embeddings
from bilmo.embed.output.parts import Parts, parts_of
from bilmo.embed.output.table import Form, Row
from bilmo.embed.texts import Floats, gathered
from bilmo.errors import OutputError, TextError
from bilmo.ids.batch import Sentence
from bilmo.net.mix import How, Mix
from bilmo.store.bundle import Bundle
from bilmo.store.model_folder import DType

PART_TOKENS, PART_BYTES = 1 << 16, 1 << 27
"""A part ends at the first of these; a few seconds of work, and what is held in memory."""


@dataclass(frozen=True)
class Wish:
    """What is to become of the text."""

    mix: How | All = "all"
    pool: Pool = "none"
    dtype: DType = "float32"
    split: str = "auto"
    compress: bool = False
    cache: str = "none"
    """Which words were computed beforehand; only to tell runs apart."""

    def form(self, elmo: Embedder) -> Form:
        """What the vectors will look like."""
        config = elmo.config
        if self.mix == "all":
            width, layers = config.vector_width, config.layers + 1
        else:
            mix = Mix(layers=config.layers, width=config.width, directions=len(config.directions), how=self.mix)
            width, layers = mix.output_width, None
        return Form(
            width=width, layers=layers, pooled=self.pool != "none", dtype=self.dtype, split=self.split != "spaces"
        )


@dataclass(frozen=True)
class Begun:
    """Before the first part is computed."""

    sentences: int | None
    """Of all the input; None where it comes through a pipe."""
    bytes: int | None
    """About the size of the file to come."""
    done_parts: int
    done_sentences: int


@dataclass(frozen=True)
class Step:
    """Some sentences more."""

    sentences: int
    tokens: int


@dataclass(frozen=True)
class Finished:
    """The file is there."""

    sentences: int
    tokens: int
    notes: list[str]


Event = Begun | Step | Finished


def run(elmo: Embedder, inputs: Inputs, output: Path, wish: Wish) -> Iterator[Event]:
    """Embed everything, or go on where the same run was stopped; the file appears when it is whole."""
    embeddings.check(output, compress=wish.compress)
    form = wish.form(elmo)
    survey = None if inputs.piped else inputs.survey
    identity = None if survey is None else _identity(elmo, survey.digest, wish)
    with parts_of(output, form, identity) as parts:
        sentences = size = None
        if survey is not None:
            sentences = survey.lines
            tokens = _expected_tokens(elmo, inputs, survey.characters)
            size = embeddings.size(output, form, sentences=sentences, tokens=tokens)
            rest = form.bytes(sentences=sentences, tokens=tokens) - form.bytes(
                sentences=parts.sentences, tokens=parts.tokens
            )
            _check_room(output, max(0, rest) + size, size)
        yield Begun(sentences, size, len(parts.files), parts.sentences)
        yield from _compute(elmo, inputs, parts, wish)
        with parts.together(output) as path:
            notes = embeddings.write(path, parts.table(), compress=wish.compress)
        found = Finished(parts.sentences, parts.tokens, notes)
    yield found


def _compute(elmo: Embedder, inputs: Inputs, parts: Parts, wish: Wish) -> Iterator[Step]:
    """All parts that are not there yet."""
    items = inputs.items()
    skipped = sum(1 for _ in islice(items, parts.sentences))
    if skipped < parts.sentences:
        raise TextError("the text became shorter while it was read; let it be written whole first")
    elmo.carry_on(parts.state())
    most = max(1, min(PART_TOKENS, PART_BYTES // parts.form.bytes(sentences=1, tokens=1)))
    # Batches are made within a part, so that a part comes out the same in every run.
    for part in gathered(((item, elmo.sentences(item)) for item in items), most):
        with parts.new([sum(map(len, sentences)) for sentences in part[1]]) as file:
            for some in _embedded(elmo, zip(*part, strict=True), wish):
                file.add(some)
                yield Step(len(some), sum(len(row.tokens) for row in some))
            file.state = elmo.carried()


def rows(elmo: Embedder, inputs: Inputs, wish: Wish) -> Iterator[Row]:
    """Embed everything without a file, a row a text."""
    items = ((item, elmo.sentences(item)) for item in inputs.items())
    return chain.from_iterable(_embedded(elmo, items, wish))


def _embedded(elmo: Embedder, items: Iterable[tuple[Item, list[Sentence]]], wish: Wish) -> Iterator[list[Row]]:
    for some, sentences in gathered(items, elmo.at_once):
        found = elmo.embed_rows(sentences, mix=wish.mix, pool=wish.pool, dtype=wish.dtype)
        yield list(map(_row, some, sentences, found))


def _row(item: Item, sentences: list[Sentence], vectors: Floats) -> Row:
    text = item.strip() if isinstance(item, str) else " ".join(item)
    return Row(text, list(chain.from_iterable(sentences)), vectors)


def _identity(elmo: Embedder, digest: str, wish: Wish) -> dict[str, str]:
    """What a run must have in common with the one that it goes on from."""
    wished = {name: str(value) for name, value in asdict(wish).items()}
    made = {"start": elmo.start, "precision": elmo.precision, "model": _fingerprint(elmo.bundle), "bilmo": __version__}
    return wished | made | {"text": digest}


def _fingerprint(bundle: Bundle) -> str:
    """Of everything that a vector depends on, a learned start included."""
    digest = hashlib.sha256(bundle.identity().encode("ascii"))
    if bundle.start is not None:
        for value in bundle.start.named().values():
            digest.update(value.contiguous().numpy().data)
    return digest.hexdigest()[:32]


def _expected_tokens(elmo: Embedder, inputs: Inputs, characters: int) -> int:
    """About how many tokens there are, from the first lines."""
    seen = tokens = 0
    for item in inputs.sample:
        seen += len(item) if isinstance(item, str) else len(json.dumps(item))
        tokens += sum(map(len, elmo.sentences(item)))
    return round(characters * tokens / seen) if seen else 0


def _check_room(output: Path, needed: int, size: int) -> None:
    free = shutil.disk_usage(output.parent).free
    if needed > free:
        raise OutputError(
            f"{output}: about {readable(size)} are to come, and as much again while parts are put together, but only "
            f"{readable(free)} are free there. Write to another disk, or less: --dtype float16 halves it, "
            "--mix mean has one layer for all, --pool mean one vector a sentence."
        )


def readable(size: int) -> str:
    """A size as people say it."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
