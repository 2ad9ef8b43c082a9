"""Other systems in separate environments, from PyPI only, with the same torch as bilmo."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

HOME = Path(__file__).parent / ".peers"


def allennlp() -> Path:
    """A Python with the files of AllenNLP. Of its dependencies it has only torch, numpy and h5py, shared with ours."""
    folder = HOME / "allennlp"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print("creating the environment of AllenNLP ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        site = Path(
            subprocess.check_output(
                [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
            ).strip()
        )
        (site / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "allennlp==2.10.1"], check=True)
        (folder / "ready").touch()
    return python


def simple_elmo() -> Path:
    """A Python with simple_elmo on TensorFlow."""
    folder = HOME / "simple_elmo"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print("creating the environment of simple_elmo ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        wanted = ["simple_elmo==0.9.2", "tensorflow-cpu", "tf_keras"]
        subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True)
        (folder / "ready").touch()
    return python
