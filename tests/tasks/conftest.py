"""Fixtures of all tests of tasks."""

from __future__ import annotations

import pytest

import bilmo

from task_data import made


@pytest.fixture(scope="session")
def tiny() -> bilmo.Embedder:
    """A tiny model in memory."""
    return bilmo.Embedder(made(0))
