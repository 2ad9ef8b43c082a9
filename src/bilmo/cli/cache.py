"""`bilmo cache`: vectors of known words, computed beforehand."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

from bilmo.errors import TextError


class Precision(StrEnum):
    """How exactly a model multiplies."""

    float32 = "float32"
    int8 = "int8"


AT_ONCE = 1024
"""Words computed at a time."""


def cache(
    model: Path = typer.Argument(help="A model of any layout."),
    texts: list[Path] = typer.Argument(
        metavar="WORDS...",
        help="Files or folders of words, one a line or between spaces; plain, .gz, .xz, .zst or .zip; - for input.",
    ),
    output: Path = typer.Option(..., "-o", "--output", help="The file to write (.safetensors)."),
    precision: Precision = typer.Option(
        Precision.float32, help="float32 or int8: what the model will be loaded with later."
    ),
) -> None:
    """Compute the vectors of a vocabulary once, for `bilmo embed --cache` and `bilmo.load(..., cache=...)`.

    Words that are not in the file still get their vectors, from the model itself. The file belongs to this model.
    """
    import numpy as np

    from bilmo.cli.show import tables as show
    from bilmo.embed import word_cache_file as known
    from bilmo.embed.load import load
    from bilmo.ids.chars import SENTENCE_BEGIN, SENTENCE_END
    from bilmo.text.files import all_lines

    words = list(dict.fromkeys(word for line in all_lines(texts) for word in line.split()))
    if not words:
        raise TextError(f"{', '.join(map(str, texts))}: no words; every line is blank")
    words = list(dict.fromkeys((SENTENCE_BEGIN, SENTENCE_END, *words)))
    elmo = load(model, precision=precision.value)
    groups = [words[at : at + AT_ONCE] for at in range(0, len(words), AT_ONCE)]
    with show.progress("thousand words", len(groups)) as counted:
        vectors = np.concatenate([elmo.word_vectors(group) for group in counted(groups)])
    known.write(output, words, vectors, elmo.bundle, precision.value)
    print(f"{output}: {len(words):,} words")
