"""Semantic roles: who did what to whom."""
