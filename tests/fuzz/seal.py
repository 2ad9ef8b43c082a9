"""The right hashes for changed files, as somebody would write them who wants a forged folder to be read."""

from __future__ import annotations

import hashlib
import json

from fuzz.damage import Files


def sealed(files: Files) -> Files:
    """The files with every `sha256` of their config.json made right."""
    found = dict(files)
    # The innermost folders first, because an outer config.json may hold the hash of an inner one.
    for name in sorted((name for name in files if name.endswith("config.json")), key=lambda name: -name.count("/")):
        content = files[name]
        folder = name.removesuffix("config.json")
        try:
            data = json.loads(content) if isinstance(content, bytes) else None
            if isinstance(data, dict):
                found[name] = _sealed(found, folder, data)
        except (ValueError, RecursionError):
            continue
    return found


def _sealed(files: Files, folder: str, data: dict[str, object]) -> bytes:
    hashes = data.get("sha256")
    if isinstance(hashes, dict):
        inside = {file: files.get(folder + file) for file in hashes if file != "config.json"}
        now = {
            file: hashlib.sha256(content).hexdigest() for file, content in inside.items() if isinstance(content, bytes)
        }
        data = data | {"sha256": now}
        own = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
        data["sha256"] = now | {"config.json": own}
    return json.dumps(data).encode()
