"""Layers are computed once and read again; the folder has a limit, and files are written whole or not at all."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from filelock import FileLock

import bilmo
from bilmo.cli.show import learning
from bilmo.errors import ConfigError, OutputError, WeightsError
from bilmo.store import model_folder as folder
from bilmo.store.atomic import new_file
from bilmo.tasks.classify.classifier import Classifier
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.network import layer_store as cache
from bilmo.tasks.network.layer_store import LayerStore, Waiting

from task_data import made, texts

SENTENCES = [["the", "cat"], [], ["a"], ["the", "cat"], ["漢字", "🙂", ""]]


def fill(store, sentences):
    return list(store.fill(sentences))


def test_stored_layers_are_those_of_the_model(tiny, tmp_path):
    store = LayerStore(tiny, tmp_path)
    assert fill(store, SENTENCES) == [(4, 4)]
    expected = [values.transpose(1, 0, 2) for values in tiny.layers(SENTENCES)]
    for found, wanted in zip(store.layers(SENTENCES), expected, strict=True):
        assert found.dtype == np.float16 and found.shape == wanted.shape
        assert np.allclose(found, wanted, atol=2e-3)


def test_layers_are_computed_once(tiny, tmp_path, monkeypatch):
    fill(LayerStore(tiny, tmp_path), SENTENCES)
    store = LayerStore(tiny, tmp_path)
    monkeypatch.setattr(store, "_compute", lambda some: pytest.fail("computed again") if some else [])
    assert fill(store, SENTENCES) == []
    assert len(store.layers(SENTENCES)) == 5
    assert len(list(tmp_path.glob("*.npy"))) == 1


def test_each_model_start_and_text_has_its_own_file(tiny, tmp_path):
    fill(LayerStore(tiny, tmp_path), SENTENCES)
    fill(LayerStore(bilmo.Embedder(made(1)), tmp_path), SENTENCES)
    fill(LayerStore(bilmo.Embedder(tiny.bundle, start="zero"), tmp_path), SENTENCES)
    fill(LayerStore(tiny, tmp_path), SENTENCES[:2])
    assert len(list(tmp_path.glob("*.npy"))) == 4


def test_predictions_are_the_same_with_stored_layers_and_without(tiny, tmp_path):
    some, labels = texts(30)
    task = Classifier(tiny, cache=tmp_path, epochs=2, hidden=8).fit(some, labels)
    kept = task.predict_proba(some)
    task.network_.input.batcher.store._stored.clear()
    assert np.allclose(kept, task.predict_proba(some), atol=1e-5)


def test_the_limit_holds_and_the_least_recently_used_are_removed_first(tiny, tmp_path, monkeypatch):
    size = 3 * 16 * 2 * 100
    monkeypatch.setenv("BILMO_CACHE_GB", str(2.5 * size / 1e9))
    store = LayerStore(tiny, tmp_path)
    files = []
    for number in range(3):
        fill(store, [[f"w{number}"] * 100])
        (new,) = set(tmp_path.glob("*.npy")) - set(files)
        os.utime(new, (number, number))
        files.append(new)
        if number == 1:
            fill(LayerStore(tiny, tmp_path), [["w0"] * 100])  # used again, so no longer the oldest
    assert files[0].exists() and not files[1].exists() and files[2].exists()
    assert store.layers([["w1"] * 100])[0].shape == (100, 3, 16)  # a removed file stays readable where it is mapped
    with pytest.raises(ConfigError, match="BILMO_CACHE_GB"):
        fill(store, [["w"] * 1000])
    monkeypatch.setenv("BILMO_CACHE_GB", "much")
    with pytest.raises(ConfigError, match="number of gigabytes"):
        fill(store, [["x"]])


def test_an_interrupted_computation_leaves_no_files(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "BATCH_TOKENS", 6)
    passing = LayerStore(tiny, tmp_path).fill(SENTENCES)
    assert next(passing) == (2, 4)
    passing.close()
    assert list(tmp_path.iterdir()) == []
    fill(LayerStore(tiny, tmp_path), SENTENCES)


def test_a_file_with_wrong_content_is_written_again(tiny, tmp_path):
    fill(LayerStore(tiny, tmp_path), SENTENCES)
    (file,) = tmp_path.glob("*.npy")
    file.write_bytes(file.read_bytes()[:50])
    store = LayerStore(tiny, tmp_path)
    assert fill(store, SENTENCES) == [(4, 4)]
    assert np.allclose(store.layers([["a"]])[0], LayerStore(tiny, tmp_path).layers([["a"]])[0])


def test_two_runs_share_a_folder(tiny, tmp_path):
    folder.write(tiny.bundle, tmp_path / "model")
    program = (
        "import sys, bilmo\nfrom pathlib import Path\nfrom bilmo.tasks.network.layer_store import LayerStore\n"
        "store = LayerStore(bilmo.load(sys.argv[1]), Path(sys.argv[2]))\n"
        "sentences = [[f'w{k}', 'cat'] for k in range(3000)]\n"
        "list(store.fill(sentences))\nprint(sum(float(v.sum()) for v in store.layers(sentences)))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "model"), str(tmp_path / "kept")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = {process.communicate()[0] for process in both}
    assert len(said) == 1 and said != {""}
    assert len(list((tmp_path / "kept").glob("*.npy"))) == 1


def test_a_second_run_says_that_it_waits_and_then_reads_what_the_first_one_wrote(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "BATCH_TOKENS", 6)
    monkeypatch.setattr(cache, "POLL", 0.001)
    first, second = LayerStore(tiny, tmp_path).fill(SENTENCES), LayerStore(tiny, tmp_path)
    assert next(first) == (2, 4)
    waiting = second.fill(SENTENCES)
    assert [next(waiting), next(waiting)] == [Waiting(), Waiting()]
    assert len(list(first)) == 2
    monkeypatch.setattr(second, "_compute", lambda some: pytest.fail("computed again") if some else [])
    assert list(waiting) == [] and len(second.layers(SENTENCES)) == 5


def test_python_and_the_command_line_report_that_a_run_waits(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cache, "POLL", 0.001)
    opened, calls = cache._try_lock, []

    def busy(path):
        calls.append(path)
        return None if len(calls) % 4 else opened(path)

    monkeypatch.setattr(cache, "_try_lock", busy)
    some, labels = texts(20)
    with pytest.warns(UserWarning, match="waiting for another run") as warned:
        Classifier(tiny, cache=tmp_path / "a", epochs=1, hidden=4).fit(some, labels)
    assert len(warned) == 1
    learning.watch(Classifier(tiny, cache=tmp_path / "b", epochs=1, hidden=4).events(Dataset(some, labels)))
    shown = capsys.readouterr()
    assert (shown.out + shown.err).count("waiting for another run") == 1


def test_no_locks_are_left(tiny, tmp_path):
    (tmp_path / "dead.lock").touch()
    with FileLock(tmp_path / "live.lock"):
        fill(LayerStore(tiny, tmp_path), SENTENCES)
        fill(LayerStore(tiny, tmp_path), SENTENCES)
        assert [file.name for file in tmp_path.glob("*.lock")] == ["live.lock"]


def test_a_full_disk_is_an_error_and_leaves_no_files(tiny, tmp_path):
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, was[1]))  # larger files are refused, as on a full disk
    try:
        with pytest.raises(OutputError, match=r"layers cannot be stored here \(File too large\).*BILMO_CACHE"):
            fill(LayerStore(tiny, tmp_path), [[f"w{k}"] * 50 for k in range(20)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)
    assert not list(tmp_path.glob("*.npy")) and not list(tmp_path.glob(".*"))


def test_partial_files_of_killed_runs_are_removed_and_those_of_live_runs_count(tiny, tmp_path, monkeypatch):
    (tmp_path / ".dead.npy.x1.partial").write_bytes(bytes(5000))
    (tmp_path / ".live.npy.x2.partial").write_bytes(bytes(5000))
    store = LayerStore(tiny, tmp_path)
    monkeypatch.setenv("BILMO_CACHE_GB", str(12_000 / 1e9))
    with FileLock(tmp_path / "live.lock"):
        fill(store, [["a"] * 60])  # 5,760 bytes
        (first,) = tmp_path.glob("*.npy")
        assert [file.name for file in tmp_path.glob(".*")] == [".live.npy.x2.partial"]
        fill(store, [["b"] * 60])
    assert not first.exists() and len(list(tmp_path.glob("*.npy"))) == 1


@pytest.mark.parametrize("times", [1, 2, 99])
def test_another_run_may_remove_a_file_right_after_it_is_written(tiny, tmp_path, monkeypatch, times):
    left = iter(range(times))

    @contextmanager
    def removed(target):
        with new_file(target) as partial:
            yield partial
        if next(left, None) is not None:
            target.unlink()

    monkeypatch.setattr(cache, "new_file", removed)
    store = LayerStore(tiny, tmp_path)
    if times > cache.TRIES:
        with pytest.raises(OutputError, match=r"cannot be stored .*missing or unreadable"):
            fill(store, SENTENCES)
        return
    fill(store, SENTENCES)
    monkeypatch.setattr(store, "_compute", lambda some: pytest.fail("computed again") if some else [])
    assert [values.shape for values in store.layers([["a"]])] == [(1, 3, 16)]


def test_a_folder_that_cannot_be_written_is_an_error(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be stored"):
        fill(LayerStore(tiny, tmp_path / "file"), SENTENCES)


def test_values_beyond_float16_are_an_error(tiny, tmp_path, monkeypatch):
    store = LayerStore(tiny, tmp_path)
    monkeypatch.setattr(tiny, "layers", lambda some: [np.full((3, len(s), 16), 1e6, np.float32) for s in some])
    with pytest.raises(WeightsError, match="float16"):
        store.layers([["a"]])


def test_a_model_has_one_identity_in_every_layout(tmp_path):
    from bilmo.formats import open as layouts

    bundle = made(0)
    layouts.write(bundle, tmp_path / "old", "allennlp")
    folder.write(bundle, tmp_path / "new")
    assert (
        bundle.identity()
        == bilmo.load(tmp_path / "new").bundle.identity()
        == bilmo.load(tmp_path / "old").bundle.identity()
    )
    assert bundle.identity() != made(1).identity()
