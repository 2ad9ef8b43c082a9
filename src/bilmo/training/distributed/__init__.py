"""Training on several processes and machines, started by torchrun."""
