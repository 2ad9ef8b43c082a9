"""Text of any size to a file of vectors, computed in parts, so that a run that was stopped can be resumed.

The run is a generator of events; the caller decides what to show.

Knows: Embedder, inputs, parts, workers, files of vectors. Blind to: the command line.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

from bilmo import __version__
from bilmo.embed.embedder import Embedder
from bilmo.embed.inputs import Inputs, Item, TextDigest, length_of
from bilmo.embed.options import All, Pool
from bilmo.embed.output import write as embeddings
from bilmo.embed.output.parts import Facts, Part, Parts, folder_of, new_part, open_parts
from bilmo.embed.output.table import EmbeddedText, VectorSpec
from bilmo.embed.texts import Floats, gathered, joined
from bilmo.errors import OutputError, TextError
from bilmo.ids.batch import Sentence
from bilmo.net.mix import How, Mix
from bilmo.store.model_folder import DType
from bilmo.store.run import Identity
from bilmo.workers import Workers

PART_TOKENS, PART_BYTES = 1 << 16, 1 << 27
"""A part ends at whichever comes first: a few seconds of work, or this much memory."""


@dataclass(frozen=True)
class EmbedSettings:
    """How text becomes vectors."""

    mix: How | All = "all"
    pool: Pool = "none"
    dtype: DType = "float32"
    lang: str = "auto"
    compress: bool = False
    word_cache: str = "none"
    """Identifies the word cache; used only to distinguish runs."""
    model: str = ""
    """The name of the model, for the metadata of the file."""

    def spec(self, elmo: Embedder) -> VectorSpec:
        """The form of the vectors."""
        config = elmo.config
        if self.mix == "all":
            width, layers = config.vector_width, config.layers + 1
        else:
            mix = Mix.for_network(config, self.mix)
            width, layers = mix.output_width, None
        pooled, split_by_bilmo = self.pool != "none", self.lang != "spaces"
        return VectorSpec(width=width, layers=layers, pooled=pooled, dtype=self.dtype, split_by_bilmo=split_by_bilmo)

    def about(self, elmo: Embedder) -> dict[str, str]:
        """The record in a file of how it was made."""
        layers = [self.mix] if isinstance(self.mix, str | int) else self.mix
        return {
            "bilmo": __version__,
            "model": self.model,
            "model_hash": elmo.bundle.identity("all"),
            "mix": ",".join(map(str, layers)),
            "pool": self.pool,
            "lang": self.lang,
            **({"dictionary": elmo.bundle.dictionary.sha256} if elmo.bundle.dictionary else {}),
            "start": elmo.start,
            "precision": elmo.precision,
        }


@dataclass(frozen=True)
class Started:
    """The run starts, or is resumed; nothing has been computed by it yet."""

    sentences: int | None
    """Number of texts in the input; None if it comes through a pipe."""
    bytes: int | None
    """Approximate size of the output file; None if the input comes through a pipe."""
    done_parts: int
    """Number of parts that an earlier, interrupted run has finished."""
    done_sentences: int
    """Number of texts in these parts."""
    characters: int | None
    """Number of characters in the input; None if it comes through a pipe."""
    done_characters: int
    """Number of characters in the finished parts."""


@dataclass(frozen=True)
class Step:
    """More tokens have been embedded. A long text takes several steps; the last one counts the text."""

    sentences: int
    tokens: int
    characters: int


@dataclass(frozen=True)
class Finished:
    """The file is complete."""

    sentences: int
    tokens: int
    notes: list[str]
    """What a user should know about the file."""
    lang: str
    """How the text was split; "auto" if that was decided for each line."""


Event = Started | Step | Finished


@dataclass(frozen=True)
class Cut:
    """The text of a part that is not computed yet."""

    facts: Facts
    path: Path
    """Of the part."""
    items: list[Item]
    rows: list[list[Sentence]]
    """The sentences of each text."""


EmbedWorkers = Workers[Cut, Step | Facts]
"""Each task is a part; the last result says that it is finished."""


def start_workers(elmo: Embedder, settings: EmbedSettings, number: int) -> EmbedWorkers:
    """Processes that compute parts for `run`, which stops them; `check_workers` says what they need."""
    return Workers(number, partial(_new_part, elmo, settings))


def run(
    elmo: Embedder,
    inputs: Inputs,
    output: Path,
    settings: EmbedSettings,
    *,
    overwrite: bool = False,
    workers: EmbedWorkers | None = None,
) -> Generator[Event, None, None]:
    """Embed everything, or resume the same run where it was stopped; the file appears when it is complete.

    overwrite: replace a file of this name; otherwise it is an error.
    workers: processes that compute parts; without them, this process does.
    """
    with workers or nullcontext():
        yield from _run(elmo, inputs, output, settings, overwrite, workers)


def _run(
    elmo: Embedder,
    inputs: Inputs,
    output: Path,
    settings: EmbedSettings,
    overwrite: bool,
    workers: EmbedWorkers | None,
) -> Iterator[Event]:
    embeddings.check(output, compress=settings.compress)
    if not overwrite and os.path.lexists(output):
        raise OutputError(f"{output}: already exists. Choose another name, or replace the file with --overwrite.")
    spec = replace(settings.spec(elmo), about=settings.about(elmo))
    stored = inputs.without_stdin
    survey = stored.survey()
    identity = None if inputs.piped else _identity(elmo, survey.digest, settings)
    beside, ordered = embeddings.beside(output), elmo.start == "carry"
    with open_parts(output, spec, identity, beside, overwrite=overwrite, ordered=ordered) as parts:
        sentences = size = characters = None
        if not inputs.piped:
            sentences, characters = survey.lines, survey.characters
            tokens = _expected_tokens(elmo, inputs, characters)
            size = embeddings.size(output, spec, sentences=sentences, tokens=tokens)
            rest = spec.bytes(sentences=sentences, tokens=tokens) - spec.bytes(
                sentences=parts.sentences, tokens=parts.tokens
            )
            _check_disk_space(output, max(0, rest) + size, size)
        done = _checked(inputs, parts)
        yield Started(sentences, size, len(parts.files), parts.sentences, characters, done)
        digest = TextDigest()
        yield from _compute(elmo, _cuts(elmo, inputs, parts, digest), parts, settings, workers)
        if (digest.value != survey.digest and not inputs.piped) or stored.survey() != survey:
            raise _changed(inputs, output, parts)
        with parts.join(output) as path:
            notes = embeddings.write(path, parts.table(), compress=settings.compress)
        lang = elmo.bundle.lang or "auto" if settings.lang == "auto" else settings.lang
        found = Finished(parts.sentences, parts.tokens, notes, lang)
    yield found


def _checked(inputs: Inputs, parts: Parts) -> int:
    """The number of characters whose vectors are finished.

    A part that was computed from another text is dropped: the text had changed while an earlier run read it.
    """
    if not parts.facts:
        return 0
    items, digest = inputs.items(), TextDigest()
    at = characters = 0
    for facts in list(parts.facts):
        for item in islice(items, max(0, facts.first - at)):
            digest.add(item)
        before, at = digest.characters, max(at, facts.first) + facts.sentences
        for item in islice(items, facts.sentences):
            digest.add(item)
        if digest.value == facts.text:
            characters += digest.characters - before
        elif facts in parts.facts:  # else it was dropped together with one before it
            parts.drop(facts)
    return characters


def _cuts(elmo: Embedder, inputs: Inputs, parts: Parts, digest: TextDigest) -> Iterator[Cut]:
    """The parts that are missing; `digest` becomes the fingerprint of all text that was read."""
    most = max(1, min(PART_TOKENS, PART_BYTES // parts.spec.bytes(sentences=1, tokens=1)))
    items, first = inputs.items(), 0
    for done in [*parts.facts, None]:
        missing = islice(items, None if done is None else done.first - first)
        # No batch crosses the end of a part, so that a part is the same in every run.
        for some, rows in gathered(((item, elmo.sentences(item)) for item in missing), most):
            for item in some:
                digest.add(item)
            facts = Facts(first, len(some), _tokens(rows), digest.value)
            yield Cut(facts, parts.path(facts), some, rows)
            first += len(some)
        if done is not None:
            for item in islice(items, done.sentences):
                digest.add(item)
            first += done.sentences


def _compute(
    elmo: Embedder, cuts: Iterator[Cut], parts: Parts, settings: EmbedSettings, workers: EmbedWorkers | None
) -> Iterator[Step]:
    """Compute all parts that are missing."""
    if workers is not None:
        parts.start()  # so that a part is kept even if this process is killed before it hears that it is finished
        for _, result in workers.run(cuts):
            if isinstance(result, Facts):
                parts.add(result)
            else:
                yield result
        return
    elmo.set_carried(parts.state())
    for cut in cuts:
        with parts.new(cut.facts) as part:
            yield from _fill(part, elmo, settings, cut)


def _new_part(elmo: Embedder, settings: EmbedSettings, cut: Cut) -> Iterator[Step | Facts]:
    """Compute a part in a worker; the last result is sent when its file is complete."""
    with new_part(cut.path, settings.spec(elmo), cut.facts) as part:
        yield from _fill(part, elmo, settings, cut)
    yield cut.facts


def _fill(part: Part, elmo: Embedder, settings: EmbedSettings, cut: Cut) -> Iterator[Step]:
    for step, texts in _embedded(elmo, zip(cut.items, cut.rows, strict=True), settings):
        part.add(texts)
        yield step
    part.state = elmo.carried()


def _changed(inputs: Inputs, output: Path, parts: Parts) -> TextError:
    first = f"remove {folder_of(output)}, then " if parts.facts else ""
    names = ", ".join(map(str, inputs.without_stdin.paths))
    return TextError(
        f"{names}: changed while it was being embedded, so nothing was written. "
        f"When it is complete, {first}run the same command again."
    )


def rows(elmo: Embedder, inputs: Inputs, settings: EmbedSettings) -> Iterator[EmbeddedText]:
    """Embed everything without a file, one text at a time."""
    items = ((item, elmo.sentences(item)) for item in inputs.items())
    return chain.from_iterable(texts for _, texts in _embedded(elmo, items, settings))


def _embedded(
    elmo: Embedder, items: Iterable[tuple[Item, list[Sentence]]], settings: EmbedSettings
) -> Iterator[tuple[Step, list[EmbeddedText]]]:
    """Each step, and the texts that it completes."""
    for some, rows in gathered(items, elmo.at_once):
        carry = elmo.start == "carry"  # then all sentences of a text are read as one
        units = rows if carry else [[sentence] for row in rows for sentence in row]
        vectors: list[Floats] = []
        characters, tokens = sum(map(length_of, some)), _tokens(units)
        for numbers, group in gathered(enumerate(units, start=1), elmo.at_once):
            vectors += elmo.embed_rows(group, mix=settings.mix)
            if numbers[-1] < len(units):
                step = Step(0, _tokens(group), characters * _tokens(group) // tokens)
                yield step, []
                characters, tokens = characters - step.characters, tokens - step.tokens
        rest = iter(vectors)
        counts = [1 if carry else len(row) for row in rows]
        found = [joined(list(islice(rest, count)), settings.pool, settings.dtype) for count in counts]
        yield Step(len(some), tokens, characters), list(map(_embedded_text, some, rows, found))


def _tokens(rows: Sequence[Sequence[Sentence]]) -> int:
    return sum(len(sentence) for row in rows for sentence in row)


def _embedded_text(item: Item, sentences: list[Sentence], vectors: Floats) -> EmbeddedText:
    text = item if isinstance(item, str) else " ".join(item)
    return EmbeddedText(text, list(chain.from_iterable(sentences)), vectors)


def _identity(elmo: Embedder, digest: str, settings: EmbedSettings) -> Identity:
    """The settings and inputs that must be the same when a run is resumed."""
    loaded = {"start": elmo.start, "precision": elmo.precision, "device": elmo.device.type}
    chosen = asdict(settings) | loaded | {"bilmo version": __version__}
    inputs = {"the model": elmo.bundle.identity("all"), "the text": digest, "the word cache": chosen.pop("word_cache")}
    if elmo.bundle.dictionary:
        inputs["the dictionary"] = elmo.bundle.dictionary.sha256
    del chosen["model"]  # a name is not an identity
    return Identity(chosen, inputs)


def _expected_tokens(elmo: Embedder, inputs: Inputs, characters: int) -> int:
    """The approximate number of tokens, estimated from the first lines."""
    seen = tokens = 0
    for item in inputs.sample:
        seen += length_of(item)
        tokens += sum(map(len, elmo.sentences(item)))
    return round(characters * tokens / seen) if seen else 0


def _check_disk_space(output: Path, needed: int, size: int) -> None:
    free = shutil.disk_usage(output.parent).free
    if needed > free:
        raise OutputError(
            f"{output}: the file will take about {readable(size)}, and the same again is needed to join its parts, "
            f"but only {readable(free)} is free. Write to another disk, or write less: --dtype float16 halves the "
            "size, --mix mean writes one layer instead of all, --pool mean one vector per text."
        )


def readable(size: int) -> str:
    """A size in MB or GB."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
