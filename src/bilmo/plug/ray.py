"""Ray: text files embedded on a cluster, one Parquet file for each; datasets of Ray Data; text for training.

Each actor loads the model once and computes with one thread. An actor or a node that is lost is replaced, and its text
is resumed where it was stopped.

Knows: Ray, Embedder, the bulk job, pieces of a corpus. Blind to: the command line.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import torch

from bilmo import __version__
from bilmo.embed import job
from bilmo.embed.embedder import Embedder
from bilmo.embed.inputs import Inputs
from bilmo.embed.job import EmbedSettings, Finished
from bilmo.embed.load import load
from bilmo.embed.options import All, LoadOptions, Pool, check
from bilmo.embed.output.parquet import arrow
from bilmo.errors import BilmoError, ConfigError, InUse, OutputError, TextError, need
from bilmo.net.mix import How
from bilmo.store.model_folder import DType
from bilmo.text.files import files
from bilmo.text.offsets import offsets
from bilmo.training.distributed.pieces import Map, Piece, Split

RETRIES = 5
"""How often a text is resumed after its actor was lost."""
WAIT_SECONDS = 60
"""For a lost actor that still holds the lock of its output."""
ROWS = 256
"""Rows of a dataset that an actor gets at a time; it computes them in batches by tokens."""


@dataclass(frozen=True)
class Shard:
    """A text file, and the Parquet file that is made of it."""

    text: Path
    output: Path


@dataclass(frozen=True)
class Embedded:
    """A finished shard."""

    shard: Shard
    sentences: int
    tokens: int


def embed_folder(
    model: str | PathLike[str],
    texts: Sequence[Path],
    output: Path,
    *,
    address: str = "auto",
    mix: How | All = "mean",
    pool: Pool = "none",
    dtype: DType = "float32",
    field: str | None = None,
    overwrite: bool = False,
    actors: int | None = None,
    **loading: Unpack[LoadOptions],
) -> tuple[list[Shard], Iterator[Embedded]]:
    """Embed text files on a Ray cluster: `a.txt` becomes `a.txt.parquet` in the folder `output`.

    Every node must see the model, the texts and the output under the same paths. Returns the shards, and an iterator
    that computes them and gives each when it is finished, in any order. The same call resumes a run. A shard is
    finished if its file was made with the same model and settings, and is newer than its text.

    address: "auto" for the cluster of this machine, "local" to start one on this machine, or HOST:PORT.
    actors: number of processes of one thread; by default one for each CPU of the cluster.
    The other settings are those of `bilmo.embed_files` and `bilmo.load`.
    """
    check(mix, pool, dtype, loading.get("batch_tokens"))
    if loading.get("start") == "carry":
        raise ConfigError("start='carry' reads a text in order, so it cannot be divided among the nodes of a cluster")
    if actors is not None and actors < 1:
        raise ConfigError(f"actors is {actors}; it must be 1 or more")
    arrow()
    shards = _shards(texts, output)
    elmo = load(model, **loading)
    settings = EmbedSettings(mix=mix, pool=pool, dtype=dtype, lang=elmo.lang, model=Path(model).name)
    for shard in shards:
        shard.output.parent.mkdir(parents=True, exist_ok=True)
        if not overwrite:
            _finished(shard, settings.about(elmo))  # refuses a file of other settings before anything is computed
    model_hash = elmo.bundle.identity("all")
    made = (os.path.abspath(model) if Path(model).exists() else os.fspath(model), model_hash, loading)  # noqa: PTH100
    return shards, _on_cluster(address, made, shards, (settings, field, overwrite), actors)


def _shards(texts: Sequence[Path], output: Path) -> list[Shard]:
    """All text files, and their outputs; a file in a sub-folder gets the same sub-folder."""
    found: dict[Path, Shard] = {}
    for given in texts:
        if not given.exists():
            raise TextError(f"{given}: there is no such file or folder")
        for text in files([given]):
            name = text.relative_to(given) if given.is_dir() else Path(text.name)
            target = output.absolute() / name.with_name(f"{name.name}.parquet")
            if target in found:
                raise OutputError(f"{target}: would be made of two files, {found[target].text} and {text}; rename one")
            found[target] = Shard(text.absolute(), target)
    if output.exists() and not output.is_dir():
        raise OutputError(f"{output}: is a file. On a cluster, the output is a folder with one file for each text.")
    for given in texts:
        if given.is_dir() and output.absolute().is_relative_to(given.absolute()):
            raise OutputError(f"{output}: is inside the input folder {given}. Choose another folder.")
    return list(found.values())


def _finished(shard: Shard, about: dict[str, str]) -> Embedded | None:
    """A shard whose file exists and is what this run would make; a file of other settings is refused."""
    if not os.path.lexists(shard.output):
        return None
    _, parquet = arrow()
    try:
        file = parquet.ParquetFile(shard.output)
        made = {key.decode(): value.decode() for key, value in (file.schema_arrow.metadata or {}).items()}
    except (OSError, ValueError) as error:
        raise OutputError(f"{shard.output}: already exists and is not a Parquet file ({error}). Remove it.") from None
    different = [name for name, value in about.items() if made.get(name) != value]
    if shard.output.stat().st_mtime < shard.text.stat().st_mtime:
        different.append("text")
    if different:
        raise OutputError(
            f"{shard.output}: already exists, but was made of another {', '.join(different)}. Choose another folder, "
            "or replace its files with --overwrite."
        )
    names = file.schema_arrow.names
    rows = file.read(columns=["sentence", *(["tokens"] if "tokens" in names else [])])
    if "tokens" in names:
        return Embedded(shard, rows.num_rows, sum(map(len, rows["tokens"].to_pylist())))
    return Embedded(shard, len(rows["sentence"].unique()), rows.num_rows)


def _loaded(model: str, model_hash: str, loading: LoadOptions) -> Embedder:
    """The model, on a node of the cluster."""
    torch.set_num_threads(1)
    elmo = load(model, **loading)
    if elmo.bundle.identity("all") != model_hash:
        raise ConfigError(f"{model}: is another model on node {os.uname().nodename}; install the same one on all nodes")
    return elmo


class ShardActor:
    """Embeds one shard after another."""

    def __init__(self, model: str, model_hash: str, loading: LoadOptions) -> None:
        self._elmo = _loaded(model, model_hash, loading)

    def embed(self, shard: Shard, settings: EmbedSettings, field: str | None, overwrite: bool) -> Embedded:
        """Embed a shard, or continue where an actor that was lost has stopped."""
        done = None if overwrite else _finished(shard, settings.about(self._elmo))
        if done is not None:
            return done
        waits_until = time.monotonic() + WAIT_SECONDS
        while True:
            events = job.run(self._elmo, Inputs((str(shard.text),), field), shard.output, settings, overwrite=overwrite)
            try:
                for event in events:
                    if isinstance(event, Finished):
                        done = Embedded(shard, event.sentences, event.tokens)
                assert done is not None, "a run ends with this event, or with an error"
                return done
            except InUse:
                if time.monotonic() > waits_until:
                    raise
                time.sleep(1)


def _on_cluster(
    address: str, made: tuple[Any, ...], shards: Sequence[Shard], how: tuple[Any, ...], actors: int | None
) -> Iterator[Embedded]:
    with connected(address) as ray:
        number = actors or max(1, int(ray.cluster_resources().get("CPU", 1)))
        # Ray's own retries are used up before it notices that a node is lost.
        kind = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(ShardActor)
        waiting, lost = deque(shards), Counter[Shard]()
        idle = [kind.remote(*made) for _ in range(min(number, len(shards)))]
        busy: dict[Any, tuple[Any, Shard]] = {}
        while waiting or busy:
            while idle:
                actor = idle.pop()
                if waiting:
                    shard = waiting.popleft()
                    busy[actor.embed.remote(shard, *how)] = actor, shard
                else:
                    ray.kill(actor)  # its CPU may be what the successor of a lost actor waits for
            for ref in ray.wait(list(busy))[0]:
                actor, shard = busy.pop(ref)
                try:
                    yield ray.get(ref)
                except ray.exceptions.RayTaskError as error:
                    raise error.cause if isinstance(error.cause, BilmoError) else error from None
                except ray.exceptions.RayActorError as error:
                    lost[shard] += 1
                    if lost[shard] > RETRIES:
                        raise BilmoError(
                            f"{shard.text}: its process was lost {lost[shard]} times, perhaps because memory ran out "
                            f"({str(error).splitlines()[0]}). The same command resumes the run."
                        ) from None
                    ray.kill(actor)  # if it was only out of reach, it must stop
                    time.sleep(lost[shard])
                    waiting.appendleft(shard)
                    actor = kind.remote(*made)
                idle.append(actor)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Ray, connected to a cluster; a connection that this program has already is used."""
    ray = need("ray", extra="ray", purpose="Working on a cluster")
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # bilmo opens no connection that nobody asked for
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level="error",
            include_dashboard=False if address == "local" else None,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"--ray {address}: there is no Ray cluster ({str(error).splitlines()[0]}). Start one with `ray start "
            "--head`, or use --ray local for this machine alone."
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


# Datasets


class DatasetActor:
    """Embeds batches of a dataset."""

    def __init__(self, model: str, model_hash: str, loading: LoadOptions, column: str, settings: EmbedSettings) -> None:
        self._elmo = _loaded(model, model_hash, loading)
        self._column, self._settings = column, settings

    def __call__(self, batch: Any) -> Any:
        """The same rows, in their order, with tokens, offsets and vectors."""
        pa, _ = arrow()
        elmo, settings = self._elmo, self._settings
        spec = settings.spec(elmo)
        items = batch[self._column].to_pylist()
        rows = [elmo.sentences("" if item is None else item) for item in items]
        tokens = [list(chain.from_iterable(row)) for row in rows]
        vectors = elmo.embed_rows(rows, mix=settings.mix, pool=settings.pool, dtype=settings.dtype)
        kind = pa.list_(pa.float16() if spec.dtype == "float16" else pa.float32(), spec.width)
        texts = [item if isinstance(item, str) else " ".join(item or []) for item in items]
        places = [offsets(text, row) for text, row in zip(texts, tokens, strict=True)]
        batch = batch.append_column("tokens", pa.array(tokens, pa.list_(pa.string())))
        batch = batch.append_column("offsets", pa.array(places, pa.list_(pa.list_(pa.int32(), 2))))
        for number in range(spec.layers or 1):
            values = vectors if spec.layers is None else [one[number] for one in vectors]
            name = "vector" if spec.layers is None else f"layer_{number}"
            column = pa.array([list(one) for one in values], kind if spec.pooled else pa.list_(kind))
            batch = batch.append_column(name, column)
        about = json.dumps(settings.about(elmo))
        return batch.append_column("about", pa.array([about] * len(items), pa.string()))


def embed_dataset(
    ds: Any,
    model: str | PathLike[str],
    *,
    column: str = "text",
    mix: How | All = "mean",
    pool: Pool = "none",
    dtype: DType = "float32",
    actors: int | tuple[int, int] = 1,
    **loading: Unpack[LoadOptions],
) -> Any:
    """A dataset of Ray Data with the vectors of its texts: `embed_dataset(ds, "en").write_parquet("out")`.

    The rows keep their columns and get `tokens`, `offsets`, `vector` (one per token, or one with `pool`; `layer_0`,
    `layer_1` and so on with mix="all"), and `about`: the model with its hash, and the settings, as JSON.

    ds: a dataset, such as `ray.data.read_parquet(folder)` gives.
    model: the name or the path of a model, which every node must have.
    column: the column with the text, or its tokens; a missing value counts as an empty text.
    actors: the number of actors, or the least and the largest number. Each uses one CPU. Leave some for the tasks that
        read and write.
    The other settings are those of `bilmo.embed_files` and `bilmo.load`.
    """
    data = need("ray.data", extra="ray", purpose="Embedding a dataset of Ray")
    check(mix, pool, dtype, loading.get("batch_tokens"))
    if loading.get("start") == "carry":
        raise ConfigError("start='carry' reads a text in order, so it cannot be divided among the nodes of a cluster")
    elmo = load(model, **loading)
    settings = EmbedSettings(mix=mix, pool=pool, dtype=dtype, lang=elmo.lang, model=Path(model).name)
    least, most = (actors, actors) if isinstance(actors, int) else actors
    where = os.path.abspath(model) if Path(model).exists() else os.fspath(model)  # noqa: PTH100
    return ds.map_batches(
        DatasetActor,
        fn_constructor_args=(where, elmo.bundle.identity("all"), loading, column, settings),
        batch_format="pyarrow",
        batch_size=ROWS,
        compute=data.ActorPoolStrategy(min_size=least, max_size=most),
        num_cpus=1,
    )


# Text for training


def on_cluster(address: str = "auto") -> Map:
    """Split the text of a training run on a cluster: `bilmo.train(texts, "model", workers=on_cluster("auto"))`.

    The text is read on this machine, and sent in pieces of a megabyte. A piece whose node is lost is sent again.

    address: as for `embed_folder`.
    """

    def mapped(split: Split, pieces: Iterable[list[str]]) -> Generator[Piece, None, None]:
        with connected(address) as ray:
            task = ray.remote(num_cpus=1)(_split)
            shared, rest = ray.put(split), iter(pieces)
            at_once = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
            waiting = deque(task.remote(__version__, shared, piece) for piece in islice(rest, at_once))
            while waiting:
                try:
                    found = ray.get(waiting.popleft())
                except ray.exceptions.RayTaskError as error:
                    raise error.cause if isinstance(error.cause, BilmoError) else error from None
                except ray.exceptions.RayError as error:
                    raise BilmoError(
                        f"--ray {address}: a part of the text could not be split ({str(error).splitlines()[0]}). Run "
                        "the same command again."
                    ) from None
                waiting.extend(task.remote(__version__, shared, piece) for piece in islice(rest, 1))
                yield found

    return mapped


def _split(version: str, split: Split, piece: list[str]) -> Piece:
    """Split a piece on a node of the cluster; another version may split differently."""
    if version != __version__:
        raise ConfigError(
            f"node {os.uname().nodename} has bilmo {__version__}, and the machine that reads the text {version}; "
            "install the same version on all nodes"
        )
    return split(piece)
