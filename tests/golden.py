"""Models of the old systems with the vectors they gave; tests that need them are skipped if they are missing."""

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("BILMO_GOLDEN", Path(__file__).parents[2] / "shared" / "golden"))

needed = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no golden files in {FOLDER} (set BILMO_GOLDEN)")
