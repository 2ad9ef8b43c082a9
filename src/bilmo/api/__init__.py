"""The public functions: what the commands of the same names do, without a terminal."""
