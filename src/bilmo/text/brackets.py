"""A text with one word in square brackets, such as "on the [mat]".

Knows: splitting, offsets. Blind to: what the word is asked for.
"""

from __future__ import annotations

from itertools import chain

from bilmo.errors import TextError
from bilmo.text.offsets import offsets
from bilmo.text.split import Splitter


def marked(split: Splitter, text: str) -> tuple[list[str], int]:
    """The sentence with the word in square brackets, without the brackets, and the position of the word."""
    if text.count("[") != 1 or text.count("]") != 1 or text.index("]") < text.index("["):
        raise TextError(
            f"the text has {text.count('[')} opening and {text.count(']')} closing square brackets; put one word in "
            'square brackets, as in "The cat sat on the [mat]."'
        )
    first, last = text.index("[") + 1, text.index("]")
    if not text[first:last].strip():
        raise TextError("the square brackets are empty; put a word in them")
    plain = text.replace("[", " ").replace("]", " ")  # of the same length, and no word continues across a bracket
    sentences = split(plain)
    tokens = list(chain.from_iterable(sentences))
    places = offsets(plain, tokens)
    inside = [number for number, (begin, end) in enumerate(places) if begin < last and end > first]
    if len(inside) != 1:
        raise TextError(
            f"the square brackets hold {len(inside)} tokens ({', '.join(tokens[k] for k in inside)}); put them around "
            "one"
        )
    number = inside[0]
    for sentence in sentences:
        if number < len(sentence):
            return list(sentence), number
        number -= len(sentence)
    raise AssertionError("the tokens are those of the sentences")
