"""`bilmo plan`: estimated time, memory and network of a training run on other machines."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from bilmo.cli.completion import complete_recipe
from bilmo.cli.options import Json

ASSUMED_GPU, ASSUMED_GPU_MEMORY = 10.0, 1000.0
"""TFLOP/s and GB/s of a GPU that this machine does not have."""


def plan(
    words: Annotated[float, typer.Option(min=1000, max=1e15, help="Number of words of the text, such as `1e9`.")],
    recipe: Annotated[
        str, typer.Option(help="Recipe of the run, as for `bilmo train`.", autocompletion=complete_recipe)
    ] = "original",
    machines: Annotated[int, typer.Option(min=1, max=4096, help="Number of machines.")] = 1,
    gpus: Annotated[
        int, typer.Option(min=0, max=64, help="Number of GPUs in each machine, with one process per GPU.")
    ] = 0,
    processes: Annotated[
        int, typer.Option(min=1, max=1024, help="Without GPUs: number of processes on each machine.")
    ] = 1,
    batch: Annotated[
        int | None,
        typer.Option(min=1, help="Words per step, on all processes together.", show_default="from the recipe"),
    ] = None,
    epochs: Annotated[
        float | None, typer.Option(min=0.001, help="Passes over the text.", show_default="from the recipe")
    ] = None,
    tflops: Annotated[
        float | None,
        typer.Option(
            min=1e-4,
            help="Speed of one process in large matrix products of float32, in 10^12 operations per second.",
            show_default=f"measured here, or {ASSUMED_GPU:g} for a GPU that this machine does not have",
        ),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="Speed at which one process reads and writes memory, in GB per second.",
            show_default=f"measured here, or {ASSUMED_GPU_MEMORY:g} for a GPU that this machine does not have",
        ),
    ] = None,
    network: Annotated[
        float, typer.Option(min=0.001, help="Speed of the network between machines, in Gbit per second.")
    ] = 10.0,
    json: Json = False,
) -> None:
    """Estimate time, memory and network of a training run on a number of machines.

    The estimate is computed from a cost model, which was fitted to measured steps on a CPU. No text is read, and
    nothing is trained.
    """  # fmt: skip
    import torch

    from bilmo.cli.show import messages, tables
    from bilmo.training import recipe as recipes
    from bilmo.training.plan import measure
    from bilmo.training.plan.plan import DAY, Machine, disk, most_machines, vocabulary
    from bilmo.training.plan.plan import plan as planned

    settings = {name: value for name, value in (("batch", batch), ("epochs", epochs)) if value is not None}
    chosen = recipes.read(recipe, settings)
    absent = gpus > 0 and not torch.cuda.is_available()
    device = torch.device("cuda" if gpus and not absent else "cpu")
    if absent and (tflops is None or memory is None):
        messages.note(
            f"this machine has no GPU to measure; assumed: {tflops or ASSUMED_GPU:g} TFLOP/s (--tflops) and "
            f"{memory or ASSUMED_GPU_MEMORY:g} GB/s of memory (--memory)"
        )
        tflops, memory = tflops or ASSUMED_GPU, memory or ASSUMED_GPU_MEMORY
    if not gpus:
        torch.set_num_threads(1)  # as torchrun starts processes
    machine = Machine(
        products=1e12 * tflops if tflops else measure.product_rate(device),
        memory=1e9 * memory if memory else measure.memory_rate(device),
        network=network * 1e9 / 8,
        processes=gpus or processes,
    )
    vocab = vocabulary(chosen, words)
    found = planned(chosen, words, machine, machines=machines)
    most = most_machines(chosen, words, machine)
    fewer = sorted({1, *(2**k for k in range(12) if 2**k < machines), machines})
    rows = [planned(chosen, words, machine, machines=number) for number in fewer]
    if json:
        names = (
            "machines",
            "processes",
            "step",
            "communication",
            "words_per_second",
            "efficiency",
            "seconds",
            "memory",
        )
        plans = [{name: getattr(row, name) for name in names} for row in rows]
        rates = {"products": machine.products, "memory": machine.memory, "network": machine.network}
        tables.json(
            {"vocab": vocab, "most_machines": most, "disk": disk(chosen, found.work, words), **rates, "plans": plans}
        )
        return
    work = found.work
    summing = f", {found.communication:.2g} s of it to sum {work.summed_bytes / 1e6:,.0f} MB of gradients"
    tables.pairs(
        [
            ("text", f"{words:,.0f} words, {chosen.train.epochs:g} epochs, {work.words:,} words in a step"),
            ("network", f"{work.parameters:,} parameters, {vocab:,} words in the vocabulary"),
            ("each process", f"{machine.products / 1e12:,.4g} TFLOP/s, {machine.memory / 1e9:,.4g} GB/s of memory"),
            ("step", f"{found.step:.3g} s" + (summing if found.processes > 1 else "")),
            ("memory", f"about {found.memory / 1e9:.1f} GB for each process"),
            ("disk", f"about {disk(chosen, work, words) / 1e9:.0f} GB in the model folder"),
            ("time", f"{timedelta(seconds=round(found.seconds))} ({found.seconds / DAY:,.1f} days)"),
            ("most machines", f"{most:,}: with more machines, each does less than half of what it does alone"),
        ]
    )
    print()
    tables.table(
        ["machines", "processes", "step (s)", "words/s", "efficiency", "days"],
        [
            (f"{row.machines:,}", f"{row.processes:,}", f"{row.step:.3g}", f"{row.words_per_second:,.0f}",
             f"{row.efficiency:.0%}", f"{row.seconds / DAY:,.2f}")
            for row in rows
        ],
    )  # fmt: skip
