"""What every task shares: estimator, training loop, run, folder, comparison."""
