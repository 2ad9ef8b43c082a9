"""Estimates of a training run on other machines."""
