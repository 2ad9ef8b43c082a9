"""Pictures as files."""

import sys
from functools import partial

import pytest

from bilmo.errors import ConfigError, MissingExtra
from bilmo.sense.draw import write
from bilmo.sense.draw.svg import Drawing


@pytest.fixture
def picture():
    drawing = Drawing()
    drawing.text(10, 20, "银行 <b> & bank")
    return drawing.svg()


def test_the_extension_selects_the_form(tmp_path, picture):
    write.write(tmp_path / "a.svg", picture, "title")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == picture
    write.write(tmp_path / "a.HTML", picture, "<title>\ud800")
    page = (tmp_path / "a.HTML").read_text(encoding="utf-8")
    assert picture in page and "&lt;title&gt;?" in page and "<script" not in page


def test_png_is_drawn_by_resvg(tmp_path, picture):
    pytest.importorskip("resvg_py")
    write.write(tmp_path / "a.png", picture, "")
    data = (tmp_path / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    width = int.from_bytes(data[16:20], "big")
    assert f'width="{width // write.SCALE}"' in picture


def test_png_without_a_font_is_refused(tmp_path, picture, monkeypatch):
    resvg = pytest.importorskip("resvg_py")
    monkeypatch.setattr(resvg, "svg_to_bytes", partial(resvg.svg_to_bytes, skip_system_fonts=True))
    with pytest.raises(ConfigError, match="PNG needs a font"):
        write.write(tmp_path / "a.png", picture, "")
    assert list(tmp_path.iterdir()) == []


def test_other_extensions_and_a_missing_library_are_errors_before_anything_is_written(tmp_path, picture, monkeypatch):
    with pytest.raises(ConfigError, match=r"\.html, \.svg, \.png"):
        write.write(tmp_path / "a.jpg", picture, "")
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(MissingExtra, match=r"bilmo\[draw\]"):
        write.write(tmp_path / "a.png", picture, "")
    assert list(tmp_path.iterdir()) == []
