"""`bilmo word-cache`: word vectors, computed once for a list of words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bilmo.cli.options import TEXT_FILES, EmbedDevice, Model, Multiply, Precision
from bilmo.errors import TextError

BATCH_WORDS = 1024
"""Words computed at a time."""


def word_cache(
    model: Model,
    texts: Annotated[
        list[Path],
        typer.Argument(
            metavar="WORDS...",
            help=f"Files or folders of words, separated by spaces or line ends: {TEXT_FILES}.",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write (.safetensors).")],
    precision: Multiply = Precision.float32,
    device: EmbedDevice = "cpu",
) -> None:
    """Compute the context-free vectors of a list of words once, to speed up later runs with the same model.

    Use the file with `bilmo embed --word-cache FILE` or `bilmo.load(..., word_cache=FILE)`, and with the same
    `--precision`. Words that are not in the file are computed as usual, so the file never changes a result.
    """
    import numpy as np

    from bilmo import progress
    from bilmo.embed import word_cache_file
    from bilmo.embed.load import load
    from bilmo.formats.open import files_of
    from bilmo.ids.chars import SENTENCE_BEGIN, SENTENCE_END
    from bilmo.store.output import check_output
    from bilmo.text.files import all_lines

    check_output([output], texts=texts, files=files_of(model))
    words = list(dict.fromkeys(word for line in all_lines(texts) for word in line.split()))
    if not words:
        raise TextError(f"{', '.join(map(str, texts))}: no words; every line is blank")
    words = list(dict.fromkeys((SENTENCE_BEGIN, SENTENCE_END, *words)))
    with progress.working("loading the model"):
        elmo = load(model, precision=precision.value, device=device)
    batches = [words[at : at + BATCH_WORDS] for at in range(0, len(words), BATCH_WORDS)]
    with progress.counting("batches of words", len(batches)) as counted:
        vectors = np.concatenate([elmo.word_vectors(batch) for batch in counted(batches)])
    word_cache_file.write(output, words, vectors, elmo.bundle, precision.value)
    print(f"{output}: {len(words):,} words")
