"""Make, continue and judge a model."""
