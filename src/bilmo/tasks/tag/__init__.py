"""One tag per token."""
