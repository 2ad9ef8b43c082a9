"""Text to tokens; no numpy, no torch."""
