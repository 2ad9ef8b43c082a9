from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bilmo.text.offsets import offsets
from bilmo.text.split import splitter

MIXED = st.text(st.sampled_from("ab 'n’t.,@-_&\n\t\u3000中文。！🇩🇪👩\u200d\u0301\u00a0\ud8005°"), max_size=60)


@pytest.mark.parametrize("lang", ["spaces", "en", "west", "zh"])
@given(text=st.one_of(st.text(max_size=60), MIXED))
@example(text="Don't  go to U.S. shops e.g.x@y.org … n't 中文abc。")
def test_text_from_begin_to_end_is_the_token_in_every_splitter(lang, text):
    tokens = [token for sentence in splitter(lang)(text) for token in sentence]
    found = offsets(text, tokens)
    assert [text[begin:end] for begin, end in found] == tokens
    assert all(end <= begin for (_, end), (begin, _) in pairwise(found))


@pytest.mark.parametrize(("text", "tokens"), [("a b", ["b"]), ("a", ["a", "a"]), ("", ["a"])])
def test_tokens_of_another_text_are_refused(text, tokens):
    with pytest.raises(ValueError, match="does not follow at character"):
        offsets(text, tokens)
