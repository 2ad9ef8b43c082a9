"""Two network namespaces with a cable between them stand for two machines that torchrun connects."""

import os
import shutil
import subprocess
import sys

import pytest

from program import program
from small_runs import log, threads, write_text

ADDRESSES = ("10.213.7.1", "10.213.7.2")
COMMAND = ("train", "text.txt", "--recipe", "recipe.toml", "--epochs", "1")


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True)


@pytest.fixture
def hosts():
    """The names of two namespaces, each with its own loopback and one end of the cable, `eth0`."""
    if shutil.which("ip") is None:
        pytest.skip("needs the program ip (iproute2)")
    names = [f"bilmo-{os.getpid()}-{k}" for k in range(2)]
    try:
        for name in names:
            made = ip("netns", "add", name)
            if made.returncode != 0:
                pytest.skip(f"this system allows no network namespaces: {made.stderr.strip()}")
        ends = [("name", "eth0", "netns", name) for name in names]
        cable = ip("link", "add", *ends[0], "type", "veth", "peer", *ends[1])
        if cable.returncode != 0:
            pytest.skip(f"this system connects no network namespaces: {cable.stderr.strip()}")
        for name, address in zip(names, ADDRESSES, strict=True):
            for command in ("link set lo up", f"addr add {address}/24 dev eth0", "link set eth0 up"):
                assert ip("-n", name, *command.split()).returncode == 0
        yield names
    finally:
        for name in names:
            ip("netns", "del", name)


def test_two_machines_find_each_other_and_train_the_model_of_one(hosts, tmp_path):
    write_text(tmp_path)
    with threads(1):
        assert program(tmp_path, *COMMAND, "-o", "alone").code == 0
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    torchrun += ["--rdzv-backend", "c10d", "--rdzv-id", "two-hosts", "--rdzv-endpoint", f"{ADDRESSES[0]}:29500"]
    # Both have the name of this machine, so torchrun cannot find out by itself who is first.
    places = [
        ["--local-addr", address, "--rdzv-conf", f"is_host={int(address == ADDRESSES[0])},join_timeout=90"]
        for address in ADDRESSES
    ]
    members = [
        subprocess.Popen(
            ["ip", "netns", "exec", name, *torchrun, *place, "-m", "bilmo", *COMMAND, "-o", "together"],
            cwd=tmp_path,
            env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, place in zip(hosts, places, strict=True)
    ]
    try:
        found = [member.communicate(timeout=240) for member in members]
    finally:
        for member in members:
            member.kill()
    assert [member.returncode for member in members] == [0, 0], found
    assert sum("training is complete" in out for out, _ in found) == 1
    steps = [[step["loss"] for step in log(tmp_path / name, "step")] for name in ("alone", "together")]
    assert steps[0] == pytest.approx(steps[1], abs=1e-4)
