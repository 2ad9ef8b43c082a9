"""Tables of similarities, as SVG."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bilmo.sense.draw import heatmap
from bilmo.sense.draw.svg import Drawing, short, width_of

SVG = "{http://www.w3.org/2000/svg}"


def cells(picture):
    """(kind, opacity, title) of each cell."""
    found = ElementTree.fromstring(picture).iter(f"{SVG}rect")
    return [
        (rect.get("class"), float(rect.get("fill-opacity")), rect.find(f"{SVG}title").text)
        for rect in found
        if rect.get("fill-opacity")
    ]


def test_each_pair_of_words_is_a_cell_as_strong_as_its_cosine():
    found = cells(heatmap.pair(["a", "b"], ["x", "y", "z"], np.array([[0.2, 0.6, 1.0], [0.2, 0.4, 0.8]]), "note"))
    assert [title for _, _, title in found] == [
        "a · x: 0.200",
        "a · y: 0.600",
        "a · z: 1.000",
        "b · x: 0.200",
        "b · y: 0.400",
        "b · z: 0.800",
    ]
    opacities = [opacity for _, opacity, _ in found]
    assert opacities[0] == 0 and opacities[2] == pytest.approx(heatmap.STRONGEST, abs=0.01)
    assert opacities[1] == pytest.approx(heatmap.STRONGEST / 2, abs=0.01)


def test_around_zero_both_signs_have_their_own_colour():
    values = np.array([[-0.5, 0.0, 1.0]])
    found = cells(heatmap.pair(["a"], ["x", "y", "z"], values, ""))
    assert [(kind, round(opacity, 2)) for kind, opacity, _ in found] == [("down", 0.42), ("up", 0.0), ("up", 0.85)]
    assert heatmap.legend(values) == "No colour: cosine 0.00. Strongest colour: 1.00. Orange: below zero."


def test_layers_are_side_by_side_and_each_has_its_name():
    picture = heatmap.layers(["a", "b"], [f"layer {k}" for k in range(4)], [np.eye(2)] * 4, "note")
    assert len(cells(picture)) == 16
    titles = [text for text in ElementTree.fromstring(picture).iter(f"{SVG}text") if text.get("class") == "title"]
    assert [text.text for text in titles] == ["layer 0", "layer 1", "layer 2", "layer 3"]
    assert float(titles[2].get("x")) > float(titles[0].get("x")) == float(titles[3].get("x"))


@settings(max_examples=20)
@given(st.lists(st.text(max_size=8), min_size=1, max_size=3))
def test_any_tokens_make_valid_xml_that_utf8_can_hold(tokens):
    values = np.full((len(tokens), len(tokens)), 0.5)
    picture = heatmap.pair(tokens, tokens, values, "")
    assert ElementTree.fromstring(picture.encode()).tag == f"{SVG}svg" and len(cells(picture)) == len(tokens) ** 2


def test_a_picture_has_light_and_dark_colours_and_loads_nothing():
    picture = heatmap.pair(["银行"], ["river"], np.eye(1), "")
    assert "prefers-color-scheme: dark" in picture and "银行" in picture
    assert re.findall(r"https?://[^\"]+", picture) == ["http://www.w3.org/2000/svg"]


def test_wide_characters_take_more_room_and_long_words_are_cut():
    assert width_of("银行") > 1.5 * width_of("ab")
    assert short("x" * 30) == "x" * 17 + "…" and short("a b" * 30) == "a b" * 30
    drawing = Drawing()
    drawing.text(0, 20, "x" * 30)
    assert f"<title>{'x' * 30}</title>" in drawing.svg()
