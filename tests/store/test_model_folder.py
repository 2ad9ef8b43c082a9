"""Our model folder: what goes in comes out to the bit, and nothing damaged is ever used."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from safetensors import safe_open
from safetensors.torch import save_file

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.embed.loaded import settled
from bilmo.errors import BilmoError, ConfigError, DamagedFile, OutputError, VocabError, WeightsError
from bilmo.formats import open as layouts
from bilmo.ids.chars import CharTable
from bilmo.ids.vocab import Vocab
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.net.state import State
from bilmo.store import atomic
from bilmo.store import model_folder as own
from bilmo.store.bundle import Bundle
from bilmo.store.hashed_folder import NewFolder
from bilmo.store.validate import sha256_of

import old_models
from old_models import SENTENCES, cuts, flips, little_memory, write_checkpoint, write_hdf5, write_manylangs
from strategies import ENTRIES, VOCABULARY, configs, random_bilm, seeds


@pytest.fixture(autouse=True)
def no_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Damaged folders are refused without waiting for a run that may be publishing."""
    monkeypatch.setattr(atomic, "PUBLISH_SECONDS", 0.0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every part: characters in Unicode, a word table, a settled start."""
    folder = tmp_path_factory.mktemp("made")
    write_manylangs(folder / "old")
    own.write(settled(layouts.read(folder / "old")), folder / "model")
    return folder / "model"


@pytest.fixture
def saved(tmp_path: Path, made: Path) -> Path:
    """The same, for a test to spoil."""
    return Path(shutil.copytree(made, tmp_path / "model"))


def bits(bundle: Bundle) -> dict[str, bytes]:
    return {name: value.numpy().tobytes() for name, value in bundle.weights.items()}


def same(a: Bundle, b: Bundle) -> None:
    assert a.config == b.config
    assert bits(a) == bits(b)
    assert {name: value.shape for name, value in a.weights.items()} == {n: v.shape for n, v in b.weights.items()}
    assert (a.vocab and a.vocab.words) == (b.vocab and b.vocab.words)
    assert (a.chars and (a.chars.entries, a.chars.max_characters)) == (
        b.chars and (b.chars.entries, b.chars.max_characters)
    )
    assert (a.start is None) == (b.start is None)
    if a.start is not None:
        mine, other = a.start.named(), b.start.named()
        assert mine.keys() == other.keys() and all(torch.equal(mine[name], other[name]) for name in mine)


def reseal(folder: Path, tensors: dict[str, torch.Tensor] | None = None) -> None:
    """Other tensors or lists in a folder, whose hashes are made to fit; a file that is missing has none."""
    if tensors is not None:
        save_file(tensors, folder / "model.safetensors")
    lists = [name for name in ("model.safetensors", "vocab.txt", "chars.txt") if (folder / name).exists()]
    change(folder, sha256={name: sha256_of(folder / name) for name in lists})


def test_a_folder_of_format_1_is_read_as_the_same_model(saved):
    """Format 1 had other names for the directions, in config.json and in the names of tensors."""
    before = own.read(saved)
    with safe_open(saved / "model.safetensors", framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    old = {"forward": "ahead", "backward": "behind"}

    def old_name(name: str) -> str:
        for new, was in old.items():
            name = name.replace(f"{new}_stack.", f"stacks.{was}.").replace(f"start.{new}.", f"start.{was}.")
        return name

    reseal(saved, {old_name(name): value for name, value in tensors.items()})
    digest = sha256_of(saved / "model.safetensors")
    change(saved, bilmo_format=1, network__directions=["ahead", "behind"], lang=..., sha256=digest)
    assert b"ahead" in (saved / "model.safetensors").read_bytes()
    same(own.read(saved), before)


def as_format_2(folder: Path) -> None:
    """A folder as it was written before lists of words had hashes: only the model card says how text was split."""
    change(folder, bilmo_format=2, lang=..., sha256=sha256_of(folder / "model.safetensors"))


def test_a_folder_of_format_2_is_read_as_the_same_model(saved):
    before = own.read(saved)
    as_format_2(saved)
    same(own.read(saved), before)
    assert own.read(saved).lang == ""
    for name in ("lang", "split"):  # its older name
        (saved / "README.md").write_text(f"# Model card\n\n| {name} | west |\n", encoding="utf-8")
        assert own.read(saved).lang == "west"
    flip_last(saved / "model.safetensors")
    refused(saved, DamagedFile, "is not the file that was saved")


def test_how_text_was_split_comes_back_and_the_card_does_not_change_it(tmp_path, saved):
    own.write(replace(own.read(saved), lang="zh"), tmp_path / "new")
    (tmp_path / "new" / "README.md").write_text("| lang | west |\n", encoding="utf-8")
    assert own.read(tmp_path / "new").lang == "zh"
    assert json.loads((tmp_path / "new" / "config.json").read_text())["lang"] == "zh"


def flip_last(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def change(folder: Path, **changes: object) -> None:
    """Settings by their path in config.json, as in network__width=3; ... for a value takes a key away.

    The hash of config.json itself is made to fit.
    """
    config = json.loads((folder / "config.json").read_text())
    for name, value in changes.items():
        place = config
        *parts, last = name.split("__")
        for part in parts:
            place = place[part]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    hashes = config.pop("sha256")
    if isinstance(hashes, str):  # of format 1 and 2
        old_models.write_json(folder / "config.json", config | {"sha256": hashes})
    else:
        files = NewFolder(folder, {name: value for name, value in hashes.items() if name != "config.json"})
        files.write_json("config.json", config)


def tensors_of(folder: Path) -> dict[str, torch.Tensor]:
    with safe_open(folder / "model.safetensors", framework="pt") as file:
        return {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118


def refused(folder: Path, error: type[BilmoError], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        layouts.read(folder)
    assert str(folder) in str(caught.value)


# Round trips


@settings(max_examples=25)
@given(configs(), seeds())
def test_any_model_comes_back_to_the_bit(config, seed):
    bilm = random_bilm(config, seed)
    chars = config.words.chars
    bundle = Bundle(
        config=config,
        weights=dict(bilm.state_dict()),
        layout="made here",
        vocab=Vocab(VOCABULARY) if config.words.table else None,
        chars=CharTable(ENTRIES, chars.max_characters) if chars and chars.kind == "unicode" else None,
    )
    with tempfile.TemporaryDirectory() as name:
        for number, before in enumerate((bundle, settled(bundle))):
            own.write(before, Path(name) / str(number))
            same(own.read(Path(name) / str(number)), before)


@pytest.mark.parametrize("write", [write_hdf5, write_checkpoint, write_manylangs])
def test_our_folder_to_our_folder_is_the_same_bytes(tmp_path, write):
    write(tmp_path / "old")
    own.write(settled(layouts.read(tmp_path / "old")), tmp_path / "one")
    own.write(layouts.read(tmp_path / "one"), tmp_path / "two")
    names = sorted(file.name for file in (tmp_path / "one").iterdir())
    assert names == sorted(file.name for file in (tmp_path / "two").iterdir())
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    same(layouts.read(tmp_path / "two"), layouts.read(tmp_path / "one"))


def test_every_character_and_word_comes_back(tmp_path):
    entries = ("<pad>", "<bow>", "<eow>", "<bos>", "<eos>", "<oov>")
    strange = "\u3000 \t\n\r\x0b\x0c\x85\u2028\ufeff\u200b\xad\0漢é🙂U+"
    table = CharTable((*entries, *strange, "", ""), 50)
    assert CharTable.from_lines(table.lines(), max_characters=50).entries == table.entries
    write_manylangs(tmp_path / "old", char_dic=[*old_models.CHAR_DIC, "\u2028", "\x1f", "U"], words=False)
    own.write(layouts.read(tmp_path / "old"), tmp_path / "new")
    assert layouts.read(tmp_path / "new").chars.entries == layouts.read(tmp_path / "old").chars.entries


def test_the_card_says_what_the_model_is_and_stays_with_it(tmp_path, saved):
    card = (saved / "README.md").read_text()
    for fact in ("| made from | ELMoForManyLangs |", "19 Unicode characters", "| settled start | stored |"):
        assert fact in card
    (saved / "README.md").write_text("# Mine\n")
    own.write(layouts.read(saved), tmp_path / "again")
    assert (tmp_path / "again" / "README.md").read_text() == "# Mine\n"


def test_notes_go_into_the_card(tmp_path):
    write_hdf5(tmp_path / "old", rows=262)
    own.write(layouts.read(tmp_path / "old"), tmp_path / "new")
    assert "- char_embed has 262 rows" in (tmp_path / "new" / "README.md").read_text()


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_missing_or_unreadable_card_does_no_harm(saved, content):
    (saved / "README.md").unlink()
    if content:
        (saved / "README.md").write_bytes(content)
    assert layouts.read(saved).vocab is not None


def test_an_existing_folder_is_not_overwritten(tmp_path, saved):
    before = {file.name: file.read_bytes() for file in saved.iterdir()}
    with pytest.raises(OutputError, match="already exists"):
        own.write(layouts.read(saved), saved)
    assert {file.name: file.read_bytes() for file in saved.iterdir()} == before


# The settled start


def test_the_settled_start_is_stored_and_used(tmp_path):
    write_hdf5(tmp_path / "old")
    own.write(settled(layouts.read(tmp_path / "old")), tmp_path / "new")
    made, stored = (bilmo.load(tmp_path / name).layers(SENTENCES) for name in ("old", "new"))
    # Not to the bit: where weights lie in memory decides how a product is rounded.
    assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(made, stored, strict=True))
    bundle = layouts.read(tmp_path / "new")
    other = State.from_named({name: part + 0.25 for name, part in bundle.start.named().items()})
    own.write(replace(bundle, start=other), tmp_path / "other")
    changed = bilmo.load(tmp_path / "other").layers(SENTENCES)
    assert not np.allclose(changed[0], stored[0], atol=1e-3)
    assert np.allclose(changed[0][0], stored[0][0], atol=1e-6)  # the word alone has no state


def test_the_stored_start_is_the_state_after_many_empty_sentences(tmp_path):
    old = write_hdf5(tmp_path / "old", seed=3)
    state = None
    for _ in range(32):
        _, state = old_models.bilmtf_layers(old, [], state)
    found = bilmo.load(tmp_path / "old").layers(SENTENCES)
    for sentence, layers in zip(SENTENCES, found, strict=True):
        expected, _ = old_models.bilmtf_layers(old, sentence, state)
        assert np.abs(layers - expected).max(initial=0) < 1e-5


def test_the_start_of_a_folder_without_one_is_computed(tmp_path):
    write_hdf5(tmp_path / "old")
    own.write(layouts.read(tmp_path / "old"), tmp_path / "new")
    assert layouts.read(tmp_path / "new").start is None
    assert Embedder(layouts.read(tmp_path / "new")).bundle.start is not None


def test_half_a_start_is_refused(saved):
    tensors = tensors_of(saved)
    del tensors["start.forward.0.c"]
    tensors["start.backward.1.h"] = torch.zeros(5)
    reseal(saved, tensors)
    refused(
        saved,
        WeightsError,
        r"start.forward.0.c is missing; its shape must be \(6,\)\n.*start.backward.1.h has shape \(5,\)",
    )


# Parts that do not fit each other


def test_missing_misshapen_and_unknown_tensors_are_refused(saved):
    tensors = tensors_of(saved)
    del tensors["words.project.bias"]
    reseal(saved, tensors)
    refused(saved, WeightsError, r"words.project.bias is missing; its shape must be \(4,\)")
    reseal(saved, tensors | {"words.project.bias": torch.zeros(5)})
    refused(saved, WeightsError, r"words.project.bias has shape \(5,\); it must be \(4,\)")
    reseal(saved, tensors | {"words.project.bias": torch.zeros(4), "more": torch.zeros(1)})
    refused(saved, WeightsError, "more do not belong to the network in config.json")


@pytest.mark.parametrize("shape", [(), (3,), (3, 5)], ids=str)
def test_a_softmax_of_another_shape_is_refused(tmp_path, shape):
    write_checkpoint(tmp_path / "old")
    own.write(layouts.read(tmp_path / "old"), tmp_path / "new")
    reseal(tmp_path / "new", tensors_of(tmp_path / "new") | {"softmax.weight": torch.zeros(shape)})
    refused(tmp_path / "new", WeightsError, "softmax")


@pytest.mark.parametrize("write", [write_checkpoint, write_manylangs])
def test_a_missing_vocabulary_or_one_of_another_length_is_refused(tmp_path, write):
    write(tmp_path / "old")
    own.write(layouts.read(tmp_path / "old"), tmp_path / "new")
    path = tmp_path / "new" / "vocab.txt"
    good = path.read_text()
    path.write_text(good + "more\n")
    reseal(tmp_path / "new")
    refused(tmp_path / "new", VocabError, r"vocab\.txt: has \d+ entries, but the weights have \d+ rows")
    path.unlink()
    refused(tmp_path / "new", DamagedFile, r"vocab\.txt: is missing. Download or convert the model again")
    reseal(tmp_path / "new")
    refused(tmp_path / "new", VocabError, r"vocab\.txt: is missing; it must name the \d+ rows")
    path.write_text(good.replace("</S>", "x"))
    reseal(tmp_path / "new")
    refused(tmp_path / "new", VocabError, r"vocab\.txt: the vocabulary of \d+ words lacks </S>")


def test_a_missing_character_table_or_one_of_another_length_is_refused(saved):
    path = saved / "chars.txt"
    good = path.read_text()
    path.write_text(good + "Q\n")
    reseal(saved)
    refused(saved, VocabError, r"chars\.txt: has 20 entries, but the weights have 19 rows")
    path.write_text(good.replace("<pad>", "x"))
    reseal(saved)
    refused(saved, VocabError, r"chars\.txt: the character table lacks <pad>")
    path.write_text(good.replace("<pad>", "<nonsense>"))
    reseal(saved)
    refused(saved, VocabError, r"chars\.txt: .*line 6: '<nonsense>' is neither one character")
    path.unlink()
    refused(saved, DamagedFile, r"chars\.txt: is missing. Download or convert the model again")
    reseal(saved)
    refused(saved, DamagedFile, r"chars\.txt: is missing")


# Settings


BAD = {
    "another format": (
        {"bilmo_format": 4, "more": 1},
        "has format 4; this version of bilmo reads formats 1 to 3. Install a newer version",
    ),
    "a misspelt key": ({"network__widht": 3}, "network.widht: .*; found 3"),
    "a missing key": ({"network__words": ...}, "network.words: Field required"),
    "a key too many": ({"more": 1}, "more: "),
    "a wrong type": ({"network__layers": "two"}, "network.layers: .*; found 'two'"),
    "an unknown cell": ({"network__cell__kind": "qrnn"}, "network.cell.kind: .*; found 'qrnn'"),
    "a contradiction": ({"network__cell__project": False}, "projection_clip needs a projection"),
    "no layers": ({"network__layers": 0}, "layers is 0; it must be from 1 to 100"),
    "a giant": ({"network__width": 10**30}, "width is 1000000000000000000000000000000"),
    "directions": (
        {"network__directions": ["backward", "forward"]},
        "directions must be forward, backward, or both in this order",
    ),
    "no number": ({"network__cell__cell_clip": float("nan")}, "cell_clip is nan"),
    "a forget bias that is not a number": ({"network__cell__forget_bias": float("nan")}, "forget_bias is nan"),
    "an infinite forget bias": ({"network__cell__forget_bias": float("-inf")}, "forget_bias is -inf"),
    "a number as text": ({"network__width": "4"}, "network.width: must be an integer; found '4'"),
    "true as a number": ({"network__layers": True}, "network.layers: must be an integer; found True"),
    "a fraction as an integer": ({"network__layers": 2.0}, "network.layers: must be an integer; found 2.0"),
    "a number as a switch": ({"network__skip": 1}, "network.skip: must be true or false; found 1"),
    "too many filters": ({"network__words__chars__filters": [[1, 1]] * 101}, "101 sizes of filters; .* at most 100"),
}


@pytest.mark.parametrize("bad", BAD)
def test_invalid_settings_are_named(saved, bad):
    changes, says = BAD[bad]
    change(saved, **changes)
    refused(saved, ConfigError, rf"config\.json: (?s:.*){says}")


@pytest.mark.parametrize(
    "changes",
    [
        {"network__words__chars__filters": [[1, 10**8]] * 300, "network__words__chars__highways": 1},
        {"network__width": 10**8, "network__cell__cells": 10**8, "network__layers": 100},
        {"network__words__table__rows": 10**8, "network__words__table__width": 10**8},
    ],
    ids=["filters", "cells", "table"],
)
def test_giant_settings_are_refused_without_allocating_memory(saved, changes):
    change(saved, **changes)
    with little_memory():
        refused(saved, BilmoError, "config.json|model.safetensors")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 10**5, b'{"bilmo_format": 1}', b"9" * 5000]
)
def test_a_file_that_is_not_a_config_is_refused(saved, content):
    (saved / "config.json").write_bytes(content)
    refused(saved, BilmoError, r"config\.json: ")


# Damage


def test_every_flipped_bit_in_the_weights_is_refused(saved):
    path = saved / "model.safetensors"
    good = path.read_bytes()
    for bad in (*flips(good, 100), *flips(good[:2000], 100, seed=1)):
        path.write_bytes(bad if len(bad) == len(good) else bad + good[2000:])
        with pytest.raises((DamagedFile, WeightsError), match=r"model\.safetensors"):
            layouts.read(saved)
    path.write_bytes(good)
    assert layouts.read(saved).layout == "bilmo folder"


def test_truncated_and_extended_weights_are_refused(saved):
    path = saved / "model.safetensors"
    good = path.read_bytes()
    for bad in (*cuts(good, 24), good + b"\0", b"\0" + good):
        path.write_bytes(bad)
        with pytest.raises((DamagedFile, WeightsError), match=r"model\.safetensors"):
            layouts.read(saved)


def test_a_header_that_claims_a_giant_is_refused(saved):
    path = saved / "model.safetensors"
    header = json.dumps({"words.project.bias": {"dtype": "F32", "shape": [2**60], "data_offsets": [0, 2**62]}}).encode()
    for size in (len(header), 2**40, 2**63):
        path.write_bytes(size.to_bytes(8, "little") + header)
        reseal(saved)
        with little_memory():
            refused(saved, DamagedFile, r"model\.safetensors: cannot be read as safetensors")


def test_weights_of_another_model_are_refused(tmp_path, saved):
    write_manylangs(tmp_path / "second", seed=9)
    own.write(settled(layouts.read(tmp_path / "second")), tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").replace(saved / "model.safetensors")
    refused(
        saved, DamagedFile, r"is not the file that was saved \(its SHA-256 differs.*Download or convert the model again"
    )


@pytest.mark.parametrize("name", ["config.json", "vocab.txt", "chars.txt", "README.md"])
@pytest.mark.parametrize("layout", [3, 2])
def test_truncated_and_flipped_small_files_are_read_or_refused(saved, name, layout):
    if layout == 2:
        as_format_2(saved)
    before = layouts.read(saved)
    path = saved / name
    good = path.read_bytes()
    for bad in (*cuts(good, 6), *flips(good, 6 if name == "README.md" else 40)):
        path.write_bytes(bad)
        try:
            found = layouts.read(saved)
        except BilmoError as error:
            assert str(saved) in str(error)
        else:
            found.network()
            if layout == 3:  # what is not refused is the same model
                same(found, before)
                assert found.lang == before.lang


@pytest.mark.parametrize("name", ["vocab.txt", "chars.txt"])
def test_every_flipped_bit_in_a_list_is_refused(saved, name):
    path = saved / name
    good = path.read_bytes()
    for place in range(8 * len(good)):
        bad = bytearray(good)
        bad[place // 8] ^= 1 << place % 8
        path.write_bytes(bad)
        refused(saved, DamagedFile, rf"{name}: is not the file that was saved .*Download or convert the model again")


@pytest.mark.parametrize(
    "spoil, says",
    [
        (lambda value: torch.full_like(value, float("nan")), "4 of 4 values are not finite"),
        (lambda value: torch.tensor([1.0, float("inf"), 1.0, 1.0]), "1 of 4 values are not finite"),
        (lambda value: value.double() * 1e300, "4 of 4 values are not finite"),
        (lambda value: value.long(), "contains int64; weights must be floating-point numbers"),
        (lambda value: value.bool(), "contains bool; weights must be floating-point numbers"),
        (lambda value: torch.complex(value, value), "contains complex64; weights must be floating-point numbers"),
    ],
    ids=["nan", "infinite", "too large", "integers", "truth values", "complex"],
)
@pytest.mark.parametrize("name", ["words.project.bias", "start.forward.0.h"])
def test_weights_that_are_not_finite_numbers_are_refused(saved, name, spoil, says):
    tensors = tensors_of(saved)
    reseal(saved, tensors | {name: spoil(tensors[name] + 2)})
    refused(saved, WeightsError, rf"model\.safetensors: {name}.*{says}")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt", "chars.txt", "README.md"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_in_a_folder_is_not_read(saved, name, kind):
    (saved / name).unlink()
    if kind == "pipe":
        os.mkfifo(saved / name)
    else:
        (saved / name).symlink_to("/dev/zero")
    if name == "README.md":
        assert layouts.read(saved).card == ""
    else:
        with pytest.raises(BilmoError, match=f"{name}: is not a file|is not a model"):
            layouts.read(saved)


def test_a_config_of_megabytes_is_refused_before_it_is_parsed(saved):
    (saved / "config.json").write_text("[" + "[1, 1], " * 10**6 + "[1, 1]]")
    refused(saved, DamagedFile, r"config\.json: has 8,000,008 bytes; a file of settings has at most 1,048,576")


def test_the_weights_have_the_permissions_of_the_other_files(tmp_path):
    words = WordsConfig(chars=CharsConfig(width=4, filters=((1, 8),)))
    config = bilmo.BiLMConfig(words=words, cell=CellConfig(cells=12), width=8)
    own.write(Bundle(config, bilmo.BiLM(config).state_dict(), layout=""), tmp_path / "m")
    modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "m").iterdir()}
    assert len(set(modes.values())) == 1, modes


def other_than(bundle: Bundle) -> Bundle:
    """The same network with other weights."""
    return replace(bundle, weights={name: value + 1 for name, value in bundle.weights.items()})


def test_a_model_that_is_replaced_while_it_is_read_is_read_completely(saved, monkeypatch):
    new, read = other_than(own.read(saved)), own._read_tensors
    replaced = []

    def meanwhile(files, network):
        if not replaced:
            replaced.append(own.publish(new, saved))
        return read(files, network)

    monkeypatch.setattr(own, "_read_tensors", meanwhile)
    same(own.read(saved), new)


def test_ctrl_c_between_two_files_leaves_the_complete_new_model(saved, monkeypatch):
    new, replace_file = other_than(own.read(saved)), Path.replace
    pressed = []

    def pressed_once(self, target):
        replace_file(self, target)
        if self.name == own.WEIGHTS and not pressed:
            pressed.append(True)
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", pressed_once)
    with pytest.raises(KeyboardInterrupt):
        own.publish(new, saved)
    same(own.read(saved), new)
    assert not list(saved.glob(".*"))
