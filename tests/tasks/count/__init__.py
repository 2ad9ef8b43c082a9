"""A third task, to show what a task is: it predicts the number of tokens in two texts, modulo 3."""
