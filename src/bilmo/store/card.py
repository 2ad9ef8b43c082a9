"""The model card: a description of a model. `training.card` adds the part about training.

Knows: Bundle. Blind to: files.
"""

from __future__ import annotations

from bilmo.store.bundle import Bundle


def parts_of(bundle: Bundle) -> list[tuple[str, int]]:
    """Number of parameters of each part of the model, from the input to the output."""
    prefixes = {
        "words.chars.": "characters",
        "words.table.": "word table",
        "words.project.": "word projection",
        "words.highways.": "word highways",
        "forward_stack.": "forward",
        "backward_stack.": "backward",
        "softmax.": "softmax",
    }
    counts = dict.fromkeys(prefixes.values(), 0)
    for name, value in bundle.weights.items():
        part = next(part for prefix, part in prefixes.items() if name.startswith(prefix))
        counts[part] += value.numel()
    return [(part, count) for part, count in counts.items() if count]


def facts_of(bundle: Bundle) -> list[tuple[str, str]]:
    """The facts about a model, as pairs of name and value."""
    config, cell, words = bundle.config, bundle.config.cell, bundle.config.words
    facts = [("layout", bundle.layout)]
    if words.chars:
        chars = words.chars
        kind = "UTF-8 bytes" if chars.kind == "bytes" else f"{chars.rows:,} Unicode characters"
        most = "any length" if chars.max_characters is None else f"{chars.max_characters} per word"
        facts.append(("characters", f"{kind}, {chars.width} wide, {most}"))
        shown = " ".join(f"{w}x{n}" for w, n in chars.filters)
        facts.append(("filters", f"{shown} = {chars.outputs}, {chars.activation}"))
        facts.append(("highways", str(chars.highways)))
    if words.table:
        origin = "given" if words.table.given else "trained"
        frozen = ", frozen" if words.table.given and not words.table.tuned else ""
        facts.append(("word table", f"{words.table.rows:,} words, {words.table.width} wide, {origin}{frozen}"))
    if words.project:
        facts.append(("word projection", f"{words.outputs} to {config.width}"))
    if words.highways:
        facts.append(("word highways", str(words.highways)))
    cells = f", {cell.cells} cells" if cell.project else ""
    facts.append(("layers", f"{config.layers} x {cell.kind.upper()}{cells}, {config.width} wide, per direction"))
    facts.append(("directions", " and ".join(config.directions)))
    facts.append(("skip connections", "yes" if config.skip else "no"))
    if cell.kind == "lstm":
        facts.append(("cell clip", str(cell.cell_clip or "none")))
        facts.append(("projection clip", str(cell.projection_clip or "none")))
        facts.append(("forget bias", str(cell.forget_bias)))
    facts.append(("vector", f"{config.layers + 1} layers of {config.vector_width}"))
    facts.append(("vocabulary", f"{len(bundle.vocab):,} words" if bundle.vocab else "none"))
    if bundle.dictionary:
        facts.append(("dictionary", f"{len(bundle.dictionary.words):,} words that are never split"))
    facts.append(("softmax", "yes" if bundle.has_softmax else "no"))
    facts.append(("settled start", "stored" if bundle.start else "computed on loading"))
    return facts


UNKNOWN_TRAINING = (
    "## Training\n\nUnknown: the files of this model do not say what text it was trained on, "
    "and its perplexity was not measured.\n"
)


def card_of(bundle: Bundle, training: str = UNKNOWN_TRAINING) -> str:
    """The card of a model that has none; `training` is the section about its training."""
    (_, origin), *rest = facts_of(bundle)
    facts = "".join(f"| {name} | {value} |\n" for name, value in [("made from", origin), *rest])
    parts = "".join(f"| {part} | {count:,} |\n" for part, count in parts_of(bundle))
    total = sum(count for _, count in parts_of(bundle))
    notes = "".join(f"- {note}\n" for note in bundle.notes)
    return (
        "# Model card\n\n"
        "A bidirectional language model for contextual word vectors, in bilmo's format.\n\n"
        f"| what | value |\n|---|---|\n{facts}\n"
        f"| part | parameters |\n|---|---|\n{parts}| all | {total:,} |\n\n"
        + (f"## Notes\n\n{notes}\n" if notes else "")
        + training
    )


def fact_in(card: str, what: str) -> str:
    """The value of a row in the tables of a card; "unknown" if there is no such row."""
    rows = (line.split("|") for line in card.splitlines() if line.startswith(f"| {what} |"))
    return next((row[2].strip() for row in rows), "unknown")
