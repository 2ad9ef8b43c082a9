"""Splitting any text takes work that grows with its length. Work is counted in characters that patterns read."""

from types import SimpleNamespace

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from bilmo.text import split
from counted import Counted

READS = 20
"""How often one character is read at most, on average; the worst text that was found needs 14.5."""
UNITS = (
    *"a I 1 . … - _ + @ ' & , / www. http:// < ! 宝 ℹ".split(),
    *(" ", "\n", "\u0301", "\u0903", "\u0600", "\u200d", "\ufe0f", "\U0001f469", "\U0001f1e9"),
)
"""What the patterns distinguish: letters, numbers, signs, accents, parts of emoji, flags, ..."""
HOSTILE = (
    "ab.",
    "1+",
    "\U0001f1e9\U0001f1ea",
    "a@",
    "ab_",
    "ab.ab..",
    "a.b@c",
    "www.!",
    "http://",
    "e\u0301-",
    "'s",
    "宝a",
)


def reads(how, text):
    """How many characters are read when a text is split; the result must be the usual one."""
    expected = how(text)
    made = []

    def counted(pattern, flags=0):
        made.append(Counted(pattern, flags))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        for name, value in vars(split).items():
            if isinstance(value, regex.Pattern):
                patch.setattr(split, name, counted(value.pattern, value.flags & regex.VERBOSE))
        inline = {
            name: lambda pattern, text, name=name: getattr(counted(pattern), name)(text)
            for name in ("findall", "match")
        }
        patch.setattr(split, "regex", SimpleNamespace(**inline))
        assert how(text) == expected
    return sum(pattern.read for pattern in made)


WAYS = {"en": split.english, "zh": split.chinese, "detect": lambda text: split.detect([text])}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("unit", HOSTILE)
def test_each_character_of_a_text_made_to_be_slow_is_read_a_few_times(unit, way):
    text = unit * 200
    assert reads(WAYS[way], text) <= READS * len(text)


@settings(max_examples=60)
@given(st.lists(st.lists(st.sampled_from(UNITS), min_size=1, max_size=5).map("".join), min_size=1, max_size=3))
def test_each_character_of_any_repetitive_text_is_read_a_few_times(units):
    text = "".join(unit * 60 for unit in units)
    for how in WAYS.values():
        assert reads(how, text) <= READS * len(text)


def test_work_that_grows_with_the_square_is_found():
    """The pattern that TOKEN had for e-mail addresses, and flags as \\X finds them."""
    word = r"[\p{L}\p{M}\p{N}]"
    for pattern, unit in ((rf"{word}+(?:[.+_-]{word}+)*@|{word}+|\X", "ab."), (r"\X", "\U0001f1e9")):
        found = Counted(pattern)
        text = unit * 400
        assert found.findall(text) == regex.findall(pattern, text)
        assert found.read > 2 * READS * len(text)


def test_an_address_is_found_wherever_a_word_can_start():
    assert split.western("x'a@b.c@d.e ab.ab@x a..b_c@d-e.f www.a@b.c") == [
        ["x'a", "@", "b.c@d.e", "ab", ".", "ab", "@", "x", "a", "..", "b_c@d-e.f", "www.a@b.c"]
    ]


def test_flags_are_pairs_with_the_accents_after_them():
    german = "\U0001f1e9\U0001f1ea"
    assert split.western(f"{german}{german}\u0301\U0001f1e9!") == [[german, f"{german}\u0301", "\U0001f1e9", "!"]]
