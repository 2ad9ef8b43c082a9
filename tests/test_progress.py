"""Progress bars: on a terminal, and only for those who ask."""

import pytest

from small_runs import write_text

from terminal import shown

SCRIPT = """
import sys, bilmo
bilmo.train("text.txt", "model", recipe="recipe.toml", epochs=0.5, progress={progress})
bilmo.evaluate("model", "text.txt", progress={progress})
"""


@pytest.mark.parametrize("progress", [True, False])
def test_training_has_a_bar_on_a_terminal_if_asked_for(tmp_path, progress):
    write_text(tmp_path)
    seen = shown(tmp_path, "-c", SCRIPT.format(progress=progress))
    if progress:
        assert all(part in seen for part in ("lines read", "training", "loss", " %", "loading the model", "lines"))
    else:
        assert seen == ""


def test_the_command_shows_one_bar_at_a_time(tmp_path):
    write_text(tmp_path)
    seen = shown(tmp_path, "-m", "bilmo", "train", "text.txt", "-o", "model", "--recipe", "recipe.toml")
    assert seen.index("reading the text") < seen.index("lines read") < seen.index("vocabulary") < seen.index("words/s")
    assert "model: training is complete" in seen
