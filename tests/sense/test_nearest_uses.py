"""Search in a segment, against a comparison with all vectors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bilmo.embed.word_space import unit
from bilmo.errors import DamagedFile, MissingExtra
from bilmo.sense import nearest_uses
from bilmo.sense.nearest_uses import Approximate, nearest, write_approximate
from bilmo.sense.places import Place
from bilmo.sense.segment import HASHES, NewSegment, Segment, packed, unpacked


def segment_of(folder, values, stored, words="ab"):
    """One sentence per vector; its word is one of `words`, in turn."""
    places = [Place([words[k % len(words)]], [False], "f", k + 1) for k in range(len(values))]
    new = NewSegment(folder, values.shape[1], stored)
    new.add(places, values)
    new.commit(len(values), "")
    new.hash_blocks()
    return Segment(folder, values.shape[1], stored, (folder / HASHES).read_bytes(), new.names, "")


def brute(stored, vector, most, among):
    scores = (stored[among] * vector).sum(axis=1)
    order = sorted(range(len(among)), key=lambda k: (-scores[k], among[k]))[:most]
    return among[order], scores[order]


@pytest.mark.parametrize("stored", ["float16", "int8"])
@settings(max_examples=40)
@given(st.integers(1, 60), st.integers(1, 80), st.integers(0, 5), st.integers(1, 50), st.booleans())
def test_exact_search_finds_what_brute_force_finds(stored, tmp_path_factory, number, most, seed, block, some):
    random = np.random.default_rng(seed)
    values = unit(random.normal(size=(number, 6)).astype(np.float32))
    values = values[random.integers(0, number, number)]  # some are equal
    segment = segment_of(tmp_path_factory.mktemp("segment") / "s", values, stored)
    vector = unit(random.normal(size=6).astype(np.float32))
    among = np.flatnonzero(random.random(number) < 0.5) if some else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest_uses, "BLOCK_USES", block)
        found = nearest(segment, vector, most, among)
    wanted = brute(unpacked(packed(values, stored)), vector, most, np.arange(number) if among is None else among)
    assert (found[0] == wanted[0]).all()
    assert (found[1] == wanted[1]).all()


@pytest.mark.parametrize(("stored", "error"), [("float16", 1e-3), ("int8", 2e-2)])
def test_stored_vectors_are_close(stored, error):
    values = unit(np.random.default_rng(0).normal(size=(200, 64)).astype(np.float32))
    values[3] = 0
    assert np.abs(unpacked(packed(values, stored)) - values).max() < error


def test_uses_of_a_word_and_their_places(tmp_path):
    values = unit(np.ones((5, 3), np.float32))
    segment = segment_of(tmp_path / "s", values, "float16", words=["Bank", "bank", "é"])
    assert segment.uses_of("BANK").tolist() == [0, 1, 3, 4]
    assert segment.uses_of("É").tolist() == [2] and segment.uses_of("no").tolist() == []
    assert segment.place(4) == (Place(["bank"], [False], "f", 5), 0)
    assert len(segment) == segment.sentences == 5


def clustered(number, width, seed):
    """Vectors like those of uses: a word has many, and they are close."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(number // 50, width))
    return unit(centres[random.integers(0, len(centres), number)] + 0.7 * random.normal(size=(number, width)))


@pytest.mark.parametrize("stored", ["float16", "int8"])
def test_approximate_search_reaches_the_recall(tmp_path, stored):
    pytest.importorskip("faiss")
    values = clustered(20_000, 32, 0)
    segment = segment_of(tmp_path / "s", values, stored)
    write_approximate(tmp_path / "s", tmp_path / "cells", len(values), 32, stored)
    cells = Approximate(tmp_path / "cells")
    found = []
    for vector in values[::200]:
        wanted = nearest(segment, vector, 10)
        uses, cosines = cells.nearest(segment, vector, 10)
        assert len(set(uses.tolist())) == 10 and (np.diff(cosines) <= 0).all()
        both = dict(zip(*wanted, strict=True))
        assert all(both.get(use, cosine) == cosine for use, cosine in zip(uses, cosines, strict=True))
        found.append(len(set(wanted[0]) & set(uses)) / 10)
    assert np.mean(found) >= 0.95


def test_what_faiss_cannot_read_is_refused_and_without_faiss_it_says_what_to_install(tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    (tmp_path / "cells").write_bytes(b"no index")
    with pytest.raises(DamagedFile, match="cells: cannot be read by faiss"):
        Approximate(tmp_path / "cells")
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(MissingExtra, match=r"bilmo\[search\]"):
        Approximate(tmp_path / "cells")
