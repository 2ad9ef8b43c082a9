"""`python -m bilmo.plug.allennlp elmo`: the command `allennlp elmo` of AllenNLP 0.9.

Knows: ElmoEmbedder. Blind to: how it computes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bilmo.errors import BilmoError
from bilmo.plug.allennlp.files import DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE


def parser() -> argparse.ArgumentParser:
    """The arguments of AllenNLP, and `--start`."""
    made = argparse.ArgumentParser(prog="python -m bilmo.plug.allennlp", description="AllenNLP's command for ELMo.")
    elmo = made.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "elmo", help="embed a file of sentences", description="Embed tokenized sentences, one per line, to HDF5."
    )
    elmo.add_argument("input_file", help="sentences, one per line, in UTF-8; - reads standard input")
    elmo.add_argument("output_file", help="HDF5 file to write")
    shown = elmo.add_mutually_exclusive_group(required=True)
    for name, text in (("all", "all layers"), ("top", "the top layer"), ("average", "the mean of all layers")):
        shown.add_argument(f"--{name}", action="store_const", const=name, dest="output_format", help=f"write {text}")
    elmo.add_argument("--options-file", default=DEFAULT_OPTIONS_FILE, help="options, or the name of a model of bilmo")
    elmo.add_argument("--weight-file", default=None, help="HDF5 weights")
    elmo.add_argument("--batch-size", type=int, default=64, help="sentences computed together")
    elmo.add_argument("--cuda-device", type=int, default=-1, help="number of a GPU, or -1 for the CPU")
    elmo.add_argument("--forget-sentences", action="store_true", help="do not write the dataset sentence_to_index")
    elmo.add_argument("--use-sentence-keys", action="store_true", help="name datasets by their sentences")
    elmo.add_argument("--file-friendly-logging", action="store_true", help="show no progress bar")
    elmo.add_argument("--vocab-path", help="accepted for old scripts, and not used: words are cached anyway")
    elmo.add_argument("--include-package", action="append", help="accepted for old scripts, and not used")
    elmo.add_argument("--start", choices=("carry", "settled", "zero"), default="carry", help="state of a sentence")
    return made


def main() -> None:
    """Run the command."""
    given = parser().parse_args()
    from bilmo.plug.allennlp.embedder import ElmoEmbedder

    weights = given.weight_file
    if weights is None and given.options_file == DEFAULT_OPTIONS_FILE:
        weights = DEFAULT_WEIGHT_FILE
    with sys.stdin if given.input_file == "-" else Path(given.input_file).open(encoding="utf-8") as input_file:
        elmo = ElmoEmbedder(given.options_file, weights, given.cuda_device, start=given.start)
        elmo.embed_file(
            input_file,
            given.output_file,
            given.output_format,
            given.batch_size,
            given.forget_sentences,
            given.use_sentence_keys,
            progress=not given.file_friendly_logging,
        )


if __name__ == "__main__":
    try:
        main()
    except (BilmoError, OSError, UnicodeDecodeError) as error:  # a user's mistake is shown without a traceback
        sys.exit(f"bilmo: {error}")
