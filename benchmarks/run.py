"""`make bench`: the benchmarks of speed and memory, one after the other; tables go to benchmarks/results."""

from __future__ import annotations

import memory
import train

import embed

if __name__ == "__main__":
    embed.main()
    train.main()
    memory.main()
