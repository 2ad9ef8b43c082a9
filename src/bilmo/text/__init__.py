"""Text to tokens; without numpy and torch."""
