import os
import subprocess
import sys
import threading
import time

import pytest
import torch

from bilmo.net.kernels.threads import side_by_side, trained_side_by_side
from small_runs import threads as torch_threads


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_trained_side_by_side_has_the_gradients_of_a_plain_graph(threads):
    torch.manual_seed(0)
    weights = [torch.randn(3, 3, requires_grad=True) for _ in range(2)]
    x = torch.randn(4, 3, requires_grad=True)
    tasks = [lambda part, w=w: torch.tanh(part @ w) for w in weights]
    was = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        a, b = trained_side_by_side(tasks, x * 2)
        (a.sum() + (b**2).sum()).backward()
    finally:
        torch.set_num_threads(was)
    found = [part.grad.clone() for part in (x, *weights)]
    for part in (x, *weights):
        part.grad = None
    (tasks[0](x * 2).sum() + (tasks[1](x * 2) ** 2).sum()).backward()
    for mine, plain in zip(found, (x, *weights), strict=True):
        torch.testing.assert_close(mine, plain.grad)


def test_weights_inside_are_trained_even_if_no_input_wants_a_gradient():
    weight = torch.ones(2, 2, requires_grad=True)
    a, b = trained_side_by_side([lambda x: x @ weight, lambda x: x], torch.ones(1, 2))
    (a.sum() + b.sum()).backward()
    assert torch.equal(weight.grad, torch.ones(2, 2))


@pytest.mark.skipif(torch.get_num_threads() < 2, reason="one thread alone does everything itself")
def test_tasks_run_in_threads_of_their_own_in_the_mode_of_the_caller():
    def seen():
        return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), threading.current_thread().name

    with torch.inference_mode():
        assert [mode[:2] for mode in side_by_side([seen, seen])] == [(False, True)] * 2
    with torch.no_grad():
        assert [mode[:2] for mode in side_by_side([seen, seen])] == [(False, False)] * 2
    modes = side_by_side([seen, seen])
    assert [mode[:2] for mode in modes] == [(True, False)] * 2
    assert threading.current_thread().name not in {mode[2] for mode in modes}


def printed(program: str) -> str:
    """What a Python program prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def test_tasks_run_after_the_main_thread_has_ended():
    program = """
import threading, torch
from bilmo.net.kernels.threads import side_by_side
torch.set_num_threads(4)
side_by_side([int, int])

def later():
    threading.main_thread().join()
    print(side_by_side([lambda: 1, torch.get_num_threads]), torch.get_num_threads())

threading.Thread(target=later).start()
"""
    assert printed(program) == "[1, 2] 4\n"


def test_a_failed_task_is_raised_after_the_others_have_ended():
    ended = []

    def fail():
        raise ValueError("the first task")

    def slow():
        time.sleep(0.2)
        ended.append(True)

    with torch_threads(2), pytest.raises(ValueError, match="the first task"):
        side_by_side([fail, slow])
    assert ended == [True]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("used", "threads"), [(False, 3), (True, 1)])
def test_a_forked_process_has_one_thread_only_if_tasks_ran_side_by_side_before(used, threads):
    program = f"""
import os, torch
from bilmo.net.kernels.threads import side_by_side
torch.set_num_threads(3)
if {used}:
    side_by_side([int, int])
child = os.fork()
if child == 0:
    os._exit(torch.get_num_threads())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert printed(program) == f"{threads}\n"
