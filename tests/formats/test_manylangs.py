"""ELMoForManyLangs folders against that system's own arithmetic, and malicious pickles."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import bilmo
from bilmo.embed.loaded import settled
from bilmo.errors import BilmoError, CannotConvert, ConfigError, DamagedFile, UnsafeFile, VocabError, WeightsError
from bilmo.formats import open as layouts

import old_models
from old_models import CHAR_DIC, SENTENCES, WORD_DIC, cuts, flips, little_memory, write_manylangs

PARTS = {"words and characters": {}, "words": {"chars": False}, "characters": {"words": False}}


def assert_arithmetic(path: Path, made: old_models.ManyLangs, sentences: list[list[str]] = SENTENCES) -> None:
    """Every layer of every sentence equals that of the old system's arithmetic."""
    found = bilmo.load(path, start="zero").layers(sentences)
    for sentence, layers in zip(sentences, found, strict=True):
        expected = old_models.manylangs_layers(made, sentence)
        assert layers.shape == expected.shape
        assert np.abs(layers - expected).max(initial=0) < 1e-5


def resave(path: Path, tensors: dict[str, object]) -> None:
    torch.save(tensors, path)


# What is read


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("zipped_pickle", [True, False], ids=["zipped pickle", "plain pickle"])
def test_every_variant_gives_the_vectors_of_the_old_rules(tmp_path, parts, zipped_pickle):
    made = write_manylangs(tmp_path, seed=1, zipped_pickle=zipped_pickle, **PARTS[parts])
    assert_arithmetic(tmp_path, made)
    assert layouts.read(tmp_path).notes == []


@pytest.mark.parametrize("sizes", [{"layers": 1}, {"layers": 3}, {"highways": 0}, {"highways": 1}], ids=str)
def test_other_depths(tmp_path, sizes):
    assert_arithmetic(tmp_path, write_manylangs(tmp_path, seed=2, **sizes))


@pytest.mark.parametrize(
    "more",
    [
        {"encoder": {"cell_clip": 0.2, "proj_clip": 0.1}},
        {"encoder": {"cell_clip": None, "proj_clip": 0}},
        {"token_embedder": {"activation": "tanh"}},
        {"token_embedder": {"max_characters_per_token": 6}},
    ],
    ids=str,
)
def test_other_settings(tmp_path, more):
    assert_arithmetic(tmp_path, write_manylangs(tmp_path, seed=3, more=more))


def test_the_begin_and_end_marks_of_words_are_swapped_as_in_the_original(tmp_path):
    write_manylangs(tmp_path)
    chars = layouts.read(tmp_path).chars
    begin, *_, end = chars.ids("cat")
    assert (CHAR_DIC[begin], CHAR_DIC[end]) == ("<eow>", "<bow>")
    assert [CHAR_DIC[id] for id in chars.ids("<S>")] == ["<eow>", "<bos>", "<bow>"]


def test_long_words_are_cut_before_they_are_looked_up(tmp_path):
    made = write_manylangs(tmp_path, seed=4, word_dic=[*WORD_DIC, "y" * 48])
    assert_arithmetic(tmp_path, made, [["y" * 48, "y" * 99, "x" * 60]])


@pytest.mark.parametrize("parts", PARTS)
def test_conversion_to_our_folder_keeps_every_bit_and_every_vector(tmp_path, parts):
    write_manylangs(tmp_path / "old", seed=5, **PARTS[parts])
    bundle = settled(layouts.read(tmp_path / "old"))
    assert layouts.write(bundle, tmp_path / "new", "bilmo") == []
    new = layouts.read(tmp_path / "new")
    assert new.config == bundle.config
    assert {n: v.numpy().tobytes() for n, v in new.weights.items()} == {
        n: v.numpy().tobytes() for n, v in bundle.weights.items()
    }
    assert (new.vocab and new.vocab.words) == (bundle.vocab and bundle.vocab.words)
    assert (new.chars and new.chars.entries) == (bundle.chars and bundle.chars.entries)
    old_vectors, new_vectors = (bilmo.load(tmp_path / name).layers(SENTENCES) for name in ("old", "new"))
    assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(old_vectors, new_vectors, strict=True))


def test_the_other_layout_cannot_hold_it(tmp_path):
    write_manylangs(tmp_path / "old")
    with pytest.raises(CannotConvert, match=r"its forget bias is 0\.0, not 1; its characters are Unicode, not bytes"):
        layouts.write(layouts.read(tmp_path / "old"), tmp_path / "new", "allennlp")


# Where the architecture is


@pytest.mark.parametrize(
    "config_path",
    [
        "/home/author/configs/cnn_small.json",
        "cnn_small.json",
        "configs/cnn_small.json",
        r"C:\Users\author\cnn_small.json",
        "../../../cnn_small.json",
    ],
)
def test_only_the_last_part_of_the_authors_path_counts(tmp_path, config_path):
    write_manylangs(tmp_path, config_path=config_path, highways=1)
    bundle = layouts.read(tmp_path)
    assert bundle.config.words.chars.highways == 1
    assert bundle.notes == []


def test_the_architecture_file_can_be_in_the_folder_configs(tmp_path):
    (tmp_path / "configs").mkdir()
    made = write_manylangs(tmp_path, architecture_name="configs/cnn_small.json", more={"encoder": {"cell_clip": 0.5}})
    assert layouts.read(tmp_path).config.cell.cell_clip == 0.5
    assert_arithmetic(tmp_path, made)


def test_another_architecture_file_is_used_and_named(tmp_path):
    write_manylangs(tmp_path, architecture_name="other.json", more={"encoder": {"cell_clip": 0.5}})
    bundle = layouts.read(tmp_path)
    assert bundle.config.cell.cell_clip == 0.5
    assert bundle.notes == ["cnn_small.json is not in the folder; other.json is used"]


@pytest.mark.parametrize("parts", PARTS)
def test_without_an_architecture_file_sizes_come_from_the_weights(tmp_path, parts):
    made = write_manylangs(tmp_path, architecture_name=None, **PARTS[parts])
    (note,) = layouts.read(tmp_path).notes
    assert note.startswith("cnn_small.json is not in the folder; sizes come from the weights")
    assert_arithmetic(tmp_path, made)


def test_the_order_of_tensors_in_the_pickle_does_not_matter(tmp_path):
    made = write_manylangs(tmp_path, architecture_name=None)
    resave(tmp_path / "token_embedder.pkl", dict(reversed(made.embedder.items())))
    resave(tmp_path / "encoder.pkl", dict(reversed(made.encoder.items())))
    assert_arithmetic(tmp_path, made)


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[]", b"{\xff", b'{"config_path": 3}', b"[" * 100_000])
def test_a_config_without_a_path_is_refused(tmp_path, content):
    write_manylangs(tmp_path)
    (tmp_path / "config.json").unlink()
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ConfigError, match=r"config\.json: has no usable config_path"):
        layouts.read(tmp_path)


@pytest.mark.parametrize("part", ["encoder", "token_embedder"])
def test_the_variants_of_lstms_alone_are_refused_by_name(tmp_path, part):
    write_manylangs(tmp_path, more={part: {"name": "lstm"}})
    with pytest.raises(ConfigError) as caught:
        layouts.read(tmp_path)
    accepted = {"encoder": "elmo", "token_embedder": "cnn"}[part]
    assert str(tmp_path / "cnn_small.json") in str(caught.value)
    assert f"{part}.name: Input should be '{accepted}'; found 'lstm'" in str(caught.value)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"encoder": {"n_layers": 0}}, "layers is 0"),
        ({"encoder": {"dim": "many"}}, "encoder.dim"),
        ({"token_embedder": {"word_dim": 0, "char_dim": 0}}, "characters, a table of words, or both"),
        ({"token_embedder": {"filters": []}}, "at least one filter"),
        ({"token_embedder": {"activation": "gelu"}}, "token_embedder.activation"),
    ],
    ids=str,
)
def test_settings_that_make_no_network_are_named_with_their_place(tmp_path, more, says):
    write_manylangs(tmp_path, more=more)
    with pytest.raises(ConfigError, match=says) as caught:
        layouts.read(tmp_path)
    assert str(tmp_path) in str(caught.value)


# Dictionaries


@pytest.mark.parametrize("kind", ["char", "word"])
@pytest.mark.parametrize("change", [-1, 1], ids=["one less", "one more"])
def test_a_dictionary_of_another_size_is_refused(tmp_path, kind, change):
    write_manylangs(tmp_path)
    entries = {"char": CHAR_DIC, "word": WORD_DIC}[kind]
    entries = [*entries, "Z"][: len(entries) + change]
    old_models.write_dic(tmp_path / f"{kind}.dic", entries)
    rows = len(entries) - change
    with pytest.raises(VocabError, match=rf"{kind}\.dic: .*{len(entries)}.*{rows}"):
        layouts.read(tmp_path)


@pytest.mark.parametrize("id", [-1, 10**12])
def test_an_id_that_no_row_has_is_refused(tmp_path, id):
    write_manylangs(tmp_path)
    with (tmp_path / "word.dic").open("a") as file:
        file.write(f"strange\t{id}\n")
    with little_memory(), pytest.raises(VocabError, match=rf"word\.dic: .*{id}"):
        layouts.read(tmp_path)


@pytest.mark.parametrize("line", ["word", "word 5", "word\tfive", "word\t", "\t", ""])
def test_a_line_that_is_not_an_entry_is_reported(tmp_path, line):
    write_manylangs(tmp_path)
    with (tmp_path / "word.dic").open("a") as file:
        file.write(f"{line}\nlast\t7\n")
    with pytest.raises(VocabError, match=r"word\.dic, line 9: .* is not a token, a tab and a number"):
        layouts.read(tmp_path)


def test_white_space_is_read_as_the_ideographic_space(tmp_path):
    dic = [*CHAR_DIC, "\u3000"]
    made = write_manylangs(tmp_path, char_dic=dic, words=False)
    assert_arithmetic(tmp_path, made, [["a\u3000c", "\u3000", "a c"]])
    assert layouts.read(tmp_path).chars.ids("\u3000")[1] == len(CHAR_DIC)


def test_other_white_space_collides_with_it_and_the_last_one_counts(tmp_path):
    dic = [*CHAR_DIC, "\u00a0", "\u3000", "\u2003"]
    write_manylangs(tmp_path, char_dic=dic, words=False)
    chars = layouts.read(tmp_path).chars
    assert chars.rows == len(dic)
    assert chars.ids("\u3000")[1] == len(dic) - 1
    assert chars.ids("\u00a0")[1] == chars.ids("\u2003")[1] == CHAR_DIC.index("<oov>")


def test_tokens_with_spaces_inside_are_kept(tmp_path):
    dic = [*WORD_DIC, "New York", "\u3000"]
    made = write_manylangs(tmp_path, word_dic=dic, chars=False)
    assert_arithmetic(tmp_path, made, [["New York", "\u3000", "New"]])


def test_entries_of_several_characters_are_ignored(tmp_path):
    write_manylangs(tmp_path, char_dic=[*CHAR_DIC, "<num>", "Q"])
    bundle = layouts.read(tmp_path)
    assert bundle.notes == ["char.dic: ignored, because they are not single characters: <num>"]
    assert bundle.chars.ids("Q")[1] == len(CHAR_DIC) + 1


@pytest.mark.parametrize("mark", ["<S>", "</S>", "<UNK>"])
def test_a_word_spelled_like_one_of_our_marks_does_not_become_one(tmp_path, mark):
    made = write_manylangs(tmp_path, word_dic=[*WORD_DIC, mark], chars=False)
    bundle = layouts.read(tmp_path)
    assert (bundle.vocab.begin, bundle.vocab.end, bundle.vocab.unknown) == (1, 2, 0)
    assert bundle.notes == [f"word.dic: ignored, because they are marks in bilmo: {mark}"]
    assert_arithmetic(tmp_path, made)


@pytest.mark.parametrize("mark", ["<bos>", "<eos>", "<oov>"])
def test_words_without_a_mark_are_refused(tmp_path, mark):
    write_manylangs(tmp_path, word_dic=[word if word != mark else "other" for word in WORD_DIC])
    with pytest.raises(VocabError, match=rf"word\.dic: lacks {mark}"):
        layouts.read(tmp_path)


@pytest.mark.parametrize("mark", CHAR_DIC[:6])
def test_characters_without_a_mark_are_refused(tmp_path, mark):
    write_manylangs(tmp_path, char_dic=[char if char != mark else "Q" for char in CHAR_DIC])
    with pytest.raises(VocabError, match=r"char\.dic: the character table lacks"):
        layouts.read(tmp_path)


@pytest.mark.parametrize("name", ["char.dic", "word.dic"])
def test_a_missing_dictionary_is_reported(tmp_path, name):
    write_manylangs(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(BilmoError, match=rf"{name}: is missing"):
        layouts.read(tmp_path)


# Tensors


def test_missing_and_misshapen_tensors_are_named_all_at_once(tmp_path):
    made = write_manylangs(tmp_path)
    del made.embedder["convolutions.1.bias"], made.encoder["backward_layer_1.state_projection.weight"]
    made.embedder["projection.weight"] = torch.zeros(4, 5)
    resave(tmp_path / "token_embedder.pkl", made.embedder)
    resave(tmp_path / "encoder.pkl", made.encoder)
    with pytest.raises(WeightsError) as caught:
        layouts.read(tmp_path)
    assert str(caught.value).splitlines()[1:] == [
        "  convolutions.1.bias is missing; its shape must be (3,)",
        "  backward_layer_1.state_projection.weight is missing; its shape must be (4, 6)",
        "  projection.weight has shape (4, 5); it must be (4, 12)",
    ]


def test_tensors_that_nothing_uses_are_named(tmp_path):
    made = write_manylangs(tmp_path)
    resave(tmp_path / "encoder.pkl", made.encoder | {"extra.weight": torch.zeros(3)})
    (tmp_path / "classifier.pkl").write_bytes(b"")
    assert layouts.read(tmp_path).notes == ["not used: extra.weight", "not used: classifier.pkl"]


@pytest.mark.parametrize("shape", [(), (1,), (2, 2), (1, 1, 1, 1)], ids=str)
@pytest.mark.parametrize("architecture", ["cnn_small.json", None])
def test_a_tensor_of_any_other_shape_is_refused(tmp_path, shape, architecture):
    made = write_manylangs(tmp_path, architecture_name=architecture)
    for path, tensors in (("token_embedder.pkl", made.embedder), ("encoder.pkl", made.encoder)):
        for name in tensors:
            resave(tmp_path / path, tensors | {name: torch.zeros(shape)})
            with pytest.raises(BilmoError) as caught:
                layouts.read(tmp_path)
            assert str(tmp_path) in str(caught.value)
        resave(tmp_path / path, tensors)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_values_of_other_widths_are_read_exactly(tmp_path, dtype):
    made = write_manylangs(tmp_path, seed=6)
    for path, tensors in (("token_embedder.pkl", made.embedder), ("encoder.pkl", made.encoder)):
        resave(tmp_path / path, {name: value.to(dtype) for name, value in tensors.items()})
        made.arrays.update({name: value.to(dtype).float().numpy() for name, value in tensors.items()})
    assert_arithmetic(tmp_path, made)


def test_parameters_that_require_gradients_are_read(tmp_path):
    made = write_manylangs(tmp_path)
    resave(tmp_path / "encoder.pkl", {name: torch.nn.Parameter(value) for name, value in made.encoder.items()})
    assert_arithmetic(tmp_path, made)


ODD = {
    "NaN": (torch.tensor([0, np.nan, 0, 0]), WeightsError, "projection.bias: 1 of 4 values are not finite"),
    "whole numbers": (torch.zeros(4, dtype=torch.int64), WeightsError, "projection.bias contains int64"),
    "complex": (torch.zeros(4, dtype=torch.complex64), WeightsError, "projection.bias contains complex64"),
    "sparse": (torch.zeros(4).to_sparse(), DamagedFile, "not a dictionary of plain tensors"),
    "without values": (torch.zeros(4, device="meta"), DamagedFile, "not a dictionary of plain tensors"),
    "a number": (3, DamagedFile, "not a dictionary of plain tensors"),
    "a list": ([torch.zeros(4)], DamagedFile, "not a dictionary of plain tensors"),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_tensors_are_refused(tmp_path, odd):
    value, error, says = ODD[odd]
    made = write_manylangs(tmp_path)
    resave(tmp_path / "token_embedder.pkl", made.embedder | {"projection.bias": value})
    with pytest.raises(error, match=says):
        layouts.read(tmp_path)


@pytest.mark.parametrize("content", [3, [], "text", {1: torch.zeros(2)}, torch.zeros(3)], ids=repr)
def test_a_pickle_of_something_else_is_refused(tmp_path, content):
    write_manylangs(tmp_path)
    torch.save(content, tmp_path / "encoder.pkl")
    with pytest.raises(DamagedFile, match=r"encoder\.pkl: .*not a dictionary of plain tensors"):
        layouts.read(tmp_path)


# Harm


class Evil:
    """An object that writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["encoder.pkl", "token_embedder.pkl"])
@pytest.mark.parametrize("kind", ["zipped", "plain", "bare"])
def test_a_pickle_that_runs_code_is_refused_and_does_not_run(tmp_path, name, kind):
    made = write_manylangs(tmp_path / "model")
    trace, path = tmp_path / "trace", tmp_path / "model" / name
    content = made.encoder | {"x": Evil(trace)}
    if kind == "bare":
        path.write_bytes(pickle.dumps(Evil(trace)))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=kind == "zipped")
    with pytest.raises(DamagedFile, match=rf"{name}: .*bilmo loads tensors only and never runs code from a pickle"):
        layouts.read(tmp_path / "model")
    assert not trace.exists()
    if kind == "bare":
        pickle.loads(path.read_bytes())
        assert trace.exists()  # the trap works: plain unpickling runs the code


def test_a_small_storage_that_claims_a_giant_tensor_is_refused(tmp_path):
    dic = [*WORD_DIC]
    made = write_manylangs(tmp_path, word_dic=dic, more={"token_embedder": {"word_dim": 10**7}})
    giant = torch.zeros(1, 1).expand(10**7, 10**7)
    resave(tmp_path / "token_embedder.pkl", made.embedder | {"word_emb_layer.embedding.weight": giant})
    assert (tmp_path / "token_embedder.pkl").stat().st_size < 10**5
    with (
        little_memory(),
        pytest.raises(UnsafeFile, match=r"word_emb_layer.embedding.weight claims 400,000,000,000,000"),
    ):
        layouts.read(tmp_path)


def test_a_bomb_in_a_pickle_is_refused(tmp_path):
    write_manylangs(tmp_path)
    path = tmp_path / "encoder.pkl"
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("encoder/data/99", "w") as member:
        for _ in range(80):
            member.write(bytes(1 << 20))
    with little_memory(), pytest.raises(UnsafeFile, match=r"encoder\.pkl: would unpack from .* to 83,"):
        layouts.read(tmp_path)


# Damage


@pytest.mark.parametrize("zipped_pickle", [True, False], ids=["zipped pickle", "plain pickle"])
def test_cuts_and_flips_of_a_pickle_are_read_or_refused(tmp_path, zipped_pickle):
    write_manylangs(tmp_path, zipped_pickle=zipped_pickle)
    path = tmp_path / "encoder.pkl"
    good = path.read_bytes()
    for bad in cuts(good):
        path.write_bytes(bad)
        with pytest.raises(BilmoError, match=str(tmp_path)):
            layouts.read(tmp_path)
    with little_memory(asked_for=False):  # memory for a false length may be requested, but not used
        for bad in flips(good, 50, seed=13):
            path.write_bytes(bad)
            try:
                layouts.read(tmp_path)
            except BilmoError as error:
                assert str(tmp_path) in str(error)


@pytest.mark.parametrize("name", ["config.json", "cnn_small.json", "char.dic", "word.dic"])
def test_cuts_and_flips_of_the_small_files_are_read_or_refused(tmp_path, name):
    write_manylangs(tmp_path)
    path = tmp_path / name
    good = path.read_bytes()
    for bad in (*cuts(good, 6), *flips(good, 40, seed=14)):
        path.write_bytes(bad)
        try:
            layouts.read(tmp_path)
        except BilmoError as error:
            assert str(tmp_path) in str(error)


def test_a_folder_with_only_one_of_the_pickles_is_not_a_model(tmp_path):
    write_manylangs(tmp_path)
    (tmp_path / "encoder.pkl").unlink()
    with pytest.raises(BilmoError, match=r"is not a model; it contains char\.dic, cnn_small\.json, config\.json"):
        layouts.read(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["seed"] == 1
