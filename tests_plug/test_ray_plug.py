"""Ray: a real cluster of two nodes on this machine, one of which is killed while it computes."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Read by Ray when it is imported or started: no connection to the outside, 127.0.0.1 instead of the outer address of
# this machine, and actors that get their share of a busy machine (Ray gives them the lowest priority but four).
os.environ.update(
    {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_worker_niceness": "0"}
)
os.environ["RAY_AUTH_MODE"] = "disabled"

import numpy as np
import pytest
import torch

import bilmo
from bilmo.errors import ConfigError, OutputError, TextError
from bilmo.plug.ray import ShardActor, embed_dataset, embed_folder, on_cluster
from bilmo.store import model_folder
from bilmo.training.corpus import build
from bilmo.training.distributed import pieces
from bilmo.training.distributed.pieces import one_process

from task_data import made

cluster_utils: Any = pytest.importorskip("ray.cluster_utils")
ray: Any = pytest.importorskip("ray")
WORDS = ["the", "cat", "saw", "a", "dog", "naïve", "漢字", "."]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    paths = os.pathsep.join([str(Path(bilmo.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = paths  # of the processes that Ray starts
    head = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 100 << 20}
    found = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    try:
        ray.init(address=found.address, log_to_driver=False, logging_level="error")
        yield found
    finally:
        ray.shutdown()
        found.shutdown()
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ray") / "model"
    model_folder.write(made(0), folder)
    return folder


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    chosen = random.Random(1)
    (tmp_path / "texts" / "more").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "c.txt", "d.txt", "more/a.txt", "more/empty.txt"):
        lines = [" ".join(chosen.choices(WORDS, k=chosen.randrange(12))) for _ in range(0 if "empty" in name else 3000)]
        (tmp_path / "texts" / name).write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "texts"


def pids_of_actors() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(f"ray::{ShardActor.__name__}".encode()):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_files_are_those_of_bilmo_embed_although_an_actor_and_a_node_are_killed(
    cluster: Any, model: Path, texts: Path, tmp_path: Path
) -> None:
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    shards, found = embed_folder(model, [texts], tmp_path / "out")
    finished = [next(found)]
    for pid in pids_of_actors()[:1]:
        os.kill(pid, signal.SIGKILL)
    cluster.remove_node(node, allow_graceful=False)
    finished += list(found)
    assert sorted(str(one.shard.text) for one in finished) == sorted(str(shard.text) for shard in shards)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for one in finished:
            alone = bilmo.embed_files(model, one.shard.text, tmp_path / "alone.parquet", overwrite=True)
            assert (one.sentences, one.tokens) == (alone.sentences, alone.tokens)
            assert one.shard.output.read_bytes() == (tmp_path / "alone.parquet").read_bytes()
    finally:
        torch.set_num_threads(threads)
    names = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert names == {f"{path.relative_to(texts).as_posix()}.parquet" for path in texts.rglob("*.txt")}
    # The same call finds everything finished; another one is refused.
    modified = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.parquet")}
    _, again = embed_folder(model, [texts], tmp_path / "out")
    assert len(list(again)) == len(shards)
    assert modified == {path: path.stat().st_mtime_ns for path in modified}
    with pytest.raises(OutputError, match=r"already exists, but was made of another mix.*--overwrite"):
        embed_folder(model, [texts], tmp_path / "out", mix="top")


def test_an_error_in_an_actor_is_the_error_of_bilmo_embed(cluster: Any, model: Path, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.jsonl").write_text('{"other": "x"}\n')
    _, found = embed_folder(model, [tmp_path / "texts"], tmp_path / "out", field="text")
    with pytest.raises(TextError, match="has no field 'text'"):
        list(found)


@pytest.mark.parametrize(("mix", "pool"), [("mean", "none"), ("all", "mean")])
def test_a_dataset_keeps_its_rows_and_gets_the_vectors_of_embed(cluster: Any, model: Path, mix: Any, pool: Any) -> None:
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False
    chosen = random.Random(2)
    rows: list[dict[str, Any]] = [{"id": n, "text": " ".join(chosen.choices(WORDS, k=n % 9))} for n in range(60)]
    ds = embed_dataset(ray.data.from_items(rows, override_num_blocks=3), model, mix=mix, pool=pool)
    found = sorted(ds.take_all(), key=lambda row: row["id"])
    assert [(row["id"], row["text"]) for row in found] == [(row["id"], row["text"]) for row in rows]
    elmo = bilmo.load(model)
    expected = elmo.embed([row["text"] for row in rows], mix=mix)
    for row, (tokens, vectors) in zip(found, expected, strict=True):
        assert list(row["tokens"]) == tokens
        assert [row["text"][begin:end] for begin, end in row["offsets"]] == tokens
        if pool == "none":
            values = np.array([np.asarray(one) for one in row["vector"]], np.float32).reshape(vectors.shape)
            assert np.allclose(values, vectors, atol=1e-5)
        else:
            pooled = elmo.embed(row["text"], mix=mix, pool=pool)
            assert np.allclose(np.stack([row[f"layer_{n}"] for n in range(len(pooled))]), pooled, atol=1e-5)
        assert json.loads(row["about"])["model_hash"] == elmo.bundle.identity("all")


def test_the_corpus_split_on_a_cluster_is_that_of_one_process_although_a_node_is_killed(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "PIECE", 500)
    chosen = random.Random(3)
    lines = [" ".join(chosen.choices(WORDS, k=9)) + f" number {n}" for n in range(2000)]
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()

    def read() -> Iterator[str]:
        yield from lines[:1000]
        cluster.remove_node(node, allow_graceful=False)
        yield from lines[1000:]

    where = {"one": (lines, one_process), "cluster": (read(), on_cluster("auto"))}
    for name, (text, mapped) in where.items():
        build(text, "en", tmp_path / name, held_out=0.1, seed=1, mapped=mapped)
    one, other = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in where)
    assert one == other


def test_a_training_run_has_its_text_split_on_a_cluster(cluster: Any, texts: Path, tmp_path: Path) -> None:
    settings: Any = {"recipe": "tiny", "lang": "spaces", "epochs": 0.01, "width": 8, "cells": 8}
    for name, workers in (("one", 1), ("cluster", on_cluster())):
        bilmo.train(texts / "a.txt", tmp_path / name, workers=workers, **settings)
    files = [(tmp_path / name / "training" / "corpus" / "train.ids").read_bytes() for name in ("one", "cluster")]
    assert files[0] == files[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bilmo.plug.ray.__version__", "9")
        with pytest.raises(ConfigError, match=r"has bilmo .*, and the machine that reads the text 9; install"):
            bilmo.train(texts / "a.txt", tmp_path / "other", workers=on_cluster(), **settings)


def test_what_cannot_be_shared_out_is_refused_before_a_cluster_is_needed(
    model: Path, texts: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    refused: tuple[tuple[dict[str, Any], str, type[Exception], str], ...] = (
        ({"start": "carry"}, "out", ConfigError, "start='carry' reads a text in order"),
        ({"actors": 0}, "out", ConfigError, "actors is 0"),
        ({}, "file", OutputError, "is a file. On a cluster, the output is a folder"),
        ({}, "texts/out", OutputError, "is inside the input folder"),
    )
    for settings, output, error, says in refused:
        with pytest.raises(error, match=says):
            embed_folder(model, [texts], tmp_path / output, **settings)
    with pytest.raises(TextError, match="there is no such file or folder"):
        embed_folder(model, [tmp_path / "missing"], tmp_path / "out")
