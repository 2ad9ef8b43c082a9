"""The examples at the end of each help screen.

Knows: the command line as a user types it. Blind to: what the commands do.
"""

from __future__ import annotations

from collections.abc import Iterable

EXAMPLES = {
    "models": ("bilmo models", "bilmo models --all"),
    "get": ("bilmo get elmo-small", "bilmo embed elmo-small sentences.txt -o vectors.h5"),
    "info": ("bilmo info en", "bilmo info elmo_weights.hdf5"),
    "convert": (
        "bilmo convert old-model new-model",
        "bilmo convert new-model for-allennlp --to allennlp",
    ),
    "export": ("bilmo export en -o en.onnx", "bilmo export en -o en-int8.onnx --precision int8"),
    "embed": (
        'bilmo embed en "He sat on the bank of the river."',
        "bilmo embed en sentences.txt -o vectors.h5",
        "bilmo embed en sentences.txt -o vectors.npy --mix top --pool mean",
        "bilmo embed en corpus -o vectors.parquet --workers 8",
    ),
    "word-cache": (
        "bilmo word-cache en words.txt -o words.safetensors",
        "bilmo embed en sentences.txt -o vectors.h5 --word-cache words.safetensors",
    ),
    "train": (
        "bilmo train text.txt -o my-model --minutes 10",
        "bilmo train text.txt -o my-model --recipe small --lang en --epochs 5",
    ),
    "finetune": (
        "bilmo finetune en text.txt -o my-model --minutes 10",
        "bilmo finetune en text.txt -o my-model --add-words 1000",
    ),
    "plan": (
        "bilmo plan --words 1e9 --recipe original --machines 16 --gpus 8",
        "bilmo plan --words 2e6 --recipe novel --processes 2",
    ),
    "evaluate": ("bilmo evaluate en text.txt",),
    "fill": ('bilmo fill en "The cat sat on the [mat]."',),
    "senses": (
        "bilmo senses en bank --in text.txt",
        "bilmo senses en bank --in text.txt -o senses.html",
        "bilmo senses en bank --in uses",
    ),
    "draw": (
        'bilmo draw en "He sat on the bank." "The bank lends money." -o words.html',
        'bilmo draw en "He sat on the bank." -o layers.svg',
    ),
    "probability": (
        'bilmo probability en "He sat on the bank."',
        "bilmo probability en text.txt --by sentence -o sentences.tsv",
    ),
    "serve": (
        "bilmo serve",
        "bilmo serve en --task my-tagger --port 8081",
        "bilmo serve en --host 0.0.0.0 --token-file token.txt",
    ),
    "index": (
        "bilmo index en text.txt -o uses",
        "bilmo index en more.txt -o uses --add",
    ),
    "similar": (
        "bilmo similar en river",
        "bilmo similar en bank --in text.txt --number 5",
        'bilmo similar en "He sat on the [bank] of the river." --in text.txt',
        'bilmo similar en "He sat on the [bank] of the river." --in uses --same-word',
    ),
    "fit": (
        "bilmo fit classify en --train reviews.tsv -o my-classifier",
        "bilmo fit tag en --train entities.conll -o my-tagger",
        "bilmo fit entail en --train pairs.tsv -o my-entailment",
        "bilmo fit relate en --train relations.tsv -o my-relations",
        "bilmo fit roles en --train roles.jsonl -o my-roles",
        "bilmo fit answer en --train questions.json -o my-reader",
        "bilmo fit coref en --train stories.conll -o my-coref",
        "bilmo fit senses en --train semcor.jsonl --inventory index.sense -o my-senses",
        "bilmo fit translate en --train train.en train.de --dev val.en val.de -o my-translator",
        "bilmo fit summarise en --train news.jsonl --text-field paras --summary-field title -o my-summariser",
    ),
    "predict": (
        "bilmo predict my-classifier reviews.txt",
        'bilmo predict my-tagger "Anna lives in Oslo."',
        "bilmo predict my-tagger sentences.txt -o tags.conll",
        "bilmo predict my-tagger sentences.txt -o tags.html",
        'bilmo predict my-reader --context text.txt --question "Where is the bank?"',
        'bilmo predict my-senses "He sat on the bank of the river."',
        'bilmo predict my-translator "A man is riding a bicycle." --best 3 --attention attention.html',
    ),
    "score": (
        "bilmo score my-tagger entities.conll",
        "bilmo score my-translator test.en test.de",
        "bilmo score my-senses ALL.data.xml --gold ALL.gold.key.txt",
    ),
    "compare": (
        "bilmo compare classify en --train reviews.tsv --seeds 3 -o table.md",
        "bilmo compare tag en --train entities.conll --seeds 3",
        "bilmo compare entail en --train pairs.tsv --variants words,both,output,input+output",
        "bilmo compare relate en --train relations.tsv --seeds 3",
        "bilmo compare roles en --train roles.jsonl --seeds 3",
        "bilmo compare answer en --train questions.json --seeds 3",
        "bilmo compare coref en --train stories.conll --seeds 3",
        "bilmo compare translate en --train train.en train.de --seeds 3 --variants words,both",
        "bilmo compare summarise en --train news.jsonl --seeds 3 --variants words,both",
    ),
}
"""By command."""


def epilog(command: str, task: str = "") -> str | None:
    """The end of the help screen of a command, or of a command for one task, in Markdown."""
    start = f"bilmo {command} {task} " if task else ""
    examples = [example for example in EXAMPLES[command] if example.startswith(start)]
    return _markdown("Examples" if len(examples) > 1 else "Example", examples) if examples else None


def _markdown(title: str, commands: Iterable[str]) -> str:
    lines = "\n".join(commands)
    return f"{title}:\n\n```\n{lines}\n```"


FIRST = _markdown(
    "To begin",
    (
        EXAMPLES["embed"][0],
        EXAMPLES["similar"][0],
        EXAMPLES["fill"][0],
        EXAMPLES["train"][0],
        EXAMPLES["fit"][0],
    ),
)
"""The end of the help screen of `bilmo` itself."""
