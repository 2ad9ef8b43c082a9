"""The common part of all tasks: estimator, training loop, run, folder, comparison."""
