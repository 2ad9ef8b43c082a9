import pytest

from bilmo.errors import ConfigError
from bilmo.training import recipe
from bilmo.training.recipe import SHIPPED, Recipe


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_recipe_is_a_recipe(name):
    assert isinstance(recipe.read(name), Recipe)


def test_the_published_shapes_are_what_was_published():
    original = recipe.read("original")
    assert (original.network.cells, original.network.width, original.network.highways) == (4096, 512, 2)
    assert (original.train.optimizer, original.train.rate, original.train.clip, original.train.window) == (
        "adagrad",
        0.2,
        10.0,
        20,
    )
    small = recipe.read("small").network
    assert (small.cells, small.width, small.highways, sum(n for _, n in small.filters)) == (1024, 128, 1, 2048)


def test_a_setting_replaces_the_one_in_the_recipe():
    changed = recipe.read("tiny", {"layers": 3, "seed": 9, "lang": "zh"})
    assert (changed.network.layers, changed.train.seed, changed.text.lang) == (3, 9, "zh")


@pytest.mark.parametrize(
    "text, says",
    [
        ("[train]\nspeed = 1\n", "train.speed"),
        ("[kitchen]\n", "kitchen"),
        ("[train]\nrate = 'high'\n", "train.rate"),
        ("[train]\ndropout = 1.0\n", "dropout is 1.0"),
        ("[train]\nbatch = 0\n", "batch is 0"),
        ("[train]\nepochs = 0\n", "epochs is 0.0; it must be above 0"),
        ("[train]\nepochs = nan\n", "epochs is nan"),
        ("[train]\nminutes = -1\n", "minutes is -1.0"),
        ("[train]\nrate = nan\n", "rate is nan"),
        ("[train]\nclip = 0\n", "clip is 0.0"),
        ("[train]\npatience = -3\n", "patience is -3"),
        ("[train]\nweight_decay = -1\n", "weight_decay is -1.0"),
        ("[train]\nseed = -1\n", "seed is -1"),
        ("[train]\nseed = 99999999999999999999999\n", "seed"),
        ("[text]\nheld_out = 1.5\n", "held_out is 1.5; it must be above 0 and below 1"),
        ("[text]\nvocab_size = 3\n", "vocab_size is 3; it must be above 3"),
        ("[text]\nmin_count = 0\n", "min_count is 0"),
        ("[network]\ntable_width = 0\n", "table_width is 0"),
        ("[network]\nlayers = 0\n", "layers is 0"),
        ("[network]\nword_highways = -1\n", "word_highways is -1; it must be from 0 to 100"),
        ("[network]\ncell = 'transformer'\n", "network.cell"),
        ("[network]\nwords = 'letters'\n", "accepted: chars, table"),
        ("[train", "is not TOML"),
        ("train = 3\n", "train: .*found 3"),
        ("text = 3\n", "text: .*found 3"),
        ("[network]\nfilters = []\n", "needs at least one filter"),
        ("[network]\nfilters = [[1, 0]]\n", "filter_number is 0"),
        ("[network]\nmax_characters = 2\n", "max_characters is 2"),
        ("[network]\ncell_clip = nan\n", "cell_clip is nan; it must be above 0 and at most 1e.30 .inf for no bound."),
        ("[network]\ncell_clip = 1e308\n", "cell_clip is 1e.308; it must be above 0 and at most 1e.30"),
        ("[network]\nlayers = 101\n", "layers is 101"),
        ("[network]\nlayers = true\n", "network.layers: must be an integer; found True"),
        ("[network]\nlayers = 2.0\n", "network.layers: must be an integer; found 2.0"),
        ("[network]\nwidth = '64'\n", "network.width: must be an integer; found '64'"),
        ("[network]\nskip = 1\n", "network.skip: must be true or false; found 1"),
        ("[network]\nfilters = [[1, '8']]\n", "network.filters.0.1: must be an integer; found '8'"),
        ("[network]\nfilters = [" + "[1, 1],\n" * 101 + "]", "101 sizes of filters"),
        ("[train]\nbatch = 9223372036854775807\n", "batch is 9223372036854775807; it must be from 1 to 100000000"),
        ("[train]\nwindow = 1000000000000\n", "window is 1000000000000; it must be from 1"),
        ("[train]\nrate = 1e308\n", r"rate is 1e\+308; it must be from 0 to 1000"),
        ("[train]\nweight_decay = 1e30\n", r"weight_decay is 1e\+30"),
        ("[train]\nrate = " + "9" * 999 + "\n", "line 2: is longer than 1,000 characters"),
        ("[train]\nrate = " + "9" * 990 + "\n", "train.rate|rate is inf"),
        ("[train]\nbatch = " + "9" * 5000 + "\n", "line 2: is longer than 1,000 characters"),
        ("[train]\nbatch = [\n" + "[\n" * 30_000, "is not TOML"),
        ("[train]\nbatch = [\n" + "[\n" * 900 + "]\n" * 901, "train.batch|is not TOML"),
        ("[" * 10**5, "has 100,000 bytes; a recipe has at most 65,536"),
        ("a" + ".a" * 10**4 + " = 1\n", "line 1: is longer than 1,000 characters"),
        ("\n".join(f"b{n}" + ".a" * 480 + " = 1" for n in range(60)), "b0: "),
        ("[text]\nvocab_size = 1000000000000\n", "vocab_size is 1000000000000; it must be above 3"),
    ],
)
def test_a_mistake_in_a_recipe_is_named(tmp_path, text, says):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=says) as caught:
        recipe.read(str(path), {"epochs": 1.0, "lang": "en"})
    assert "mine.toml" in str(caught.value)


def test_a_byte_order_mark_is_ignored(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[train]\nseed = 9\n", encoding="utf-8-sig")
    assert recipe.read(str(path)).train.seed == 9


def test_an_unknown_recipe_is_refused_and_the_known_ones_are_named():
    with pytest.raises(ConfigError, match="accepted: tiny, novel, small, original, finetune, en, zh, or a TOML file"):
        recipe.read("huge")


def test_cells_are_refused_if_they_would_be_ignored():
    for cell in ("gru", "rnn"):
        with pytest.raises(ConfigError, match=f"cells is 300 and width is 128; only an LSTM .*; a {cell} has"):
            recipe.read("novel", {"cell": cell, "cells": 300})
        assert recipe.read("novel", {"cell": cell}).network.width == 128
        assert recipe.read("novel", {"cell": cell, "cells": 300, "width": 300}).network.width == 300
    assert recipe.read("novel", {"cells": 300}).network.cells == 300
