"""The models and fitted tasks of a server, by their names.

Knows: Embedder, fitted tasks. Blind to: HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load
from bilmo.embed.options import LoadOptions
from bilmo.errors import ConfigError
from bilmo.generate.folder import load as load_task
from bilmo.store.installed import installed
from bilmo.tasks.core.spec import AnyEstimator
from bilmo.tasks.core.task_folder import bilm_of
from bilmo.web.refused import Refused


@dataclass(frozen=True)
class Served:
    """Models and tasks, loaded once."""

    models: Mapping[str, Embedder]
    tasks: Mapping[str, AnyEstimator] = field(default_factory=dict)

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


def load_all(models: Sequence[str], tasks: Sequence[str], **options: Unpack[LoadOptions]) -> Served:
    """Load models and tasks by their paths or names. A task shares its biLM with the models if it is one of them."""
    paths, folders = named(models, "model"), named(tasks, "task")
    elmos = {name: load(path, **options) for name, path in paths.items()}
    by_identity: dict[tuple[str, str], Embedder] = {
        (elmo.bundle.identity(), elmo.start): elmo for elmo in elmos.values() if elmo.precision == "float32"
    }

    def fitted(folder: Path) -> AnyEstimator:
        facts = bilm_of(folder)
        return load_task(folder, elmo=by_identity.get((facts.sha256, facts.start)) if facts else None)

    return Served(elmos, {name: fitted(folder) for name, folder in folders.items()})
