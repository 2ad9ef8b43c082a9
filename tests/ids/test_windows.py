import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bilmo.ids.windows import Stream, Text, Whole

BEGIN, END = 0, 1


@st.composite
def texts(draw):
    """Sentences of distinct word ids, so that every word says where it came from; and an order of them."""
    lengths = draw(st.lists(st.integers(0, 9), min_size=1, max_size=30).filter(any))
    ids = np.arange(3, 3 + sum(lengths), dtype=np.uint32)
    order = np.array(draw(st.permutations(range(len(lengths)))))
    return Text(ids, np.cumsum(lengths), BEGIN, END), order


def sentence(text, number):
    start = text.ends[number - 1] if number else 0
    return [int(id) for id in text.ids[start : text.ends[number]]]


def read_forward(words):
    return [BEGIN, *words], [*words, END]


def read_backward(words):
    return [END, *words[::-1]], [*words[::-1], BEGIN]


@given(texts(), st.integers(1, 4), st.integers(1, 6))
def test_a_stream_is_the_sentences_one_after_the_other_dealt_to_rows(drawn, rows, window):
    text, order = drawn
    stream = Stream(text, order, rows=rows, window=window)
    for name, read in (("forward", read_forward), ("backward", read_backward)):
        inputs, targets = ([x for n in order for x in read(sentence(text, n))[k]] for k in range(2))
        each = len(inputs) // rows
        assert len(stream) == each // window
        for row in range(rows):
            piece = slice(row * each, row * each + len(stream) * window)
            found = [getattr(stream[n], name) for n in range(len(stream))]
            assert [x for part in found for x in part.inputs[row]] == inputs[piece]
            assert [x for part in found for x in part.targets[row]] == targets[piece]


@given(texts(), st.integers(1, 40), st.integers(1, 12), st.integers(0, 5))
def test_whole_sentences_come_once_each_in_pieces_no_longer_than_allowed(drawn, budget, longest, seed):
    text, order = drawn
    whole = Whole(text, order, budget=budget, longest=longest, seed=seed)
    found = {"forward": [], "backward": []}
    for number in range(len(whole)):
        step = whole[number]
        assert step.lengths.max() <= longest
        assert step.lengths.sum() - step.lengths.min() < budget  # a batch ends with the sentence that fills it
        for name, pieces in found.items():
            reading = getattr(step, name)
            assert reading.inputs.shape == reading.targets.shape == (len(step.lengths), step.lengths.max())
            for row, length in enumerate(step.lengths):
                pieces.append((list(reading.inputs[row, :length]), list(reading.targets[row, :length])))
    for name, read in (("forward", read_forward), ("backward", read_backward)):
        expected = []
        for number in order:
            inputs, targets = read(sentence(text, number))
            for at in range(0, len(inputs), longest):
                expected.append((inputs[at : at + longest], targets[at : at + longest]))
        assert sorted(found[name]) == sorted(expected)


def test_sentences_of_like_length_stand_together():
    random = np.random.default_rng(0)
    ends = np.cumsum(random.integers(1, 60, 4000))
    text = Text(np.zeros(ends[-1], dtype=np.uint32), ends, BEGIN, END)
    whole = Whole(text, random.permutation(4000), budget=500, longest=80, seed=0)
    padded = sum(step.lengths.max() * len(step.lengths) for step in (whole[n] for n in range(len(whole))))
    assert padded < 1.1 * text.steps(np.arange(len(text.ends))).sum()
