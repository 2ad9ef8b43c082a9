"""The commands for tasks: fit, predict, score, compare."""
