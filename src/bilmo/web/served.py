"""The models, fitted tasks and indexes of a server, by their names.

Knows: Embedder, fitted tasks, Index. Blind to: HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load
from bilmo.embed.options import LoadOptions
from bilmo.errors import ConfigError, TextError
from bilmo.generate.folder import load as load_task
from bilmo.sense.index import Index
from bilmo.sense.index_run import check_model
from bilmo.store.installed import installed
from bilmo.tasks.core.spec import AnyEstimator
from bilmo.tasks.core.task_folder import bilm_of
from bilmo.web.refused import Refused


@dataclass(frozen=True)
class Served:
    """Models, tasks and indexes, loaded once."""

    models: Mapping[str, Embedder]
    tasks: Mapping[str, AnyEstimator] = field(default_factory=dict)
    indexes: Mapping[str, Index] = field(default_factory=dict)
    """By the names of their models."""

    def model(self, name: str | None) -> tuple[str, Embedder]:
        """The model of a name, or the first one."""
        if name is None:
            return next(iter(self.models.items()))
        if name not in self.models:
            raise Refused(404, f"there is no model {name!r}; this server has {', '.join(self.models)}")
        return name, self.models[name]

    def task(self, name: str) -> AnyEstimator:
        """The task of a name."""
        if name not in self.tasks:
            here = f"this server has {', '.join(self.tasks)}" if self.tasks else "this server has none (see --task)"
            raise Refused(404, f"there is no task {name!r}; {here}")
        return self.tasks[name]

    def index(self, model: str) -> Index:
        """The index of a model."""
        if model not in self.indexes:
            raise TextError(f"give among, the texts to search; there is no index of {model!r} here (see --index)")
        return self.indexes[model]


def named(given: Sequence[str], kind: str) -> dict[str, Path]:
    """Paths by name. A path may be given as NAME=PATH; otherwise the last part of the path is its name."""
    found: dict[str, Path] = {}
    for one in given:
        name, equals, path = one.partition("=")
        if not equals or Path(one).exists():
            name, path = Path(one).resolve().name if one not in installed() else one, one
        if not name or not path or "/" in name:
            raise ConfigError(f"{one!r} is not a {kind}; accepted: a path, or NAME=PATH with a name without slashes")
        if name in found:
            raise ConfigError(f"two {kind}s are called {name!r}; give one of them another name with NAME={path}")
        found[name] = Path(path)
    return found


def load_all(
    models: Sequence[str], tasks: Sequence[str], indexes: Sequence[Path] = (), **options: Unpack[LoadOptions]
) -> Served:
    """Load models and tasks by their paths or names, and open indexes.

    A task shares its biLM with the models if it is one of them. An index must have been made with one of the models.
    """
    opened = [Index.open(folder) for folder in indexes]
    paths, folders = named(models, "model"), named(tasks, "task")
    elmos = {name: load(path, **options) for name, path in paths.items()}
    by_identity: dict[tuple[str, str], Embedder] = {
        (elmo.bundle.identity(), elmo.start): elmo for elmo in elmos.values() if elmo.precision == "float32"
    }

    def fitted(folder: Path) -> AnyEstimator:
        facts = bilm_of(folder)
        return load_task(folder, elmo=by_identity.get((facts.sha256, facts.start)) if facts else None)

    return Served(elmos, {name: fitted(folder) for name, folder in folders.items()}, _of_models(elmos, opened))


def _of_models(elmos: Mapping[str, Embedder], indexes: Sequence[Index]) -> dict[str, Index]:
    """Each index under the names of its model."""
    found: dict[str, Index] = {}
    identities = {name: elmo.bundle.identity("layers") for name, elmo in elmos.items()} if indexes else {}
    for index in indexes:
        names = [name for name, identity in identities.items() if identity == index.config.model]
        if not names:
            raise ConfigError(
                f"{index.folder}: was made with another model ({index.config.model_name}) than {', '.join(elmos)}; "
                "serve that model too, or build an index with one of these"
            )
        for name in names:
            check_model(elmos[name], index.folder, index.config)
            if name in found:
                raise ConfigError(
                    f"{index.folder}: model {name} has an index already, {found[name].folder}; put all texts into one "
                    "index with bilmo index --add"
                )
            found[name] = index
    return found
