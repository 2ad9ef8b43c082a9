"""Bridges to other libraries: one file for each, imported only when it is used, each with its own extra."""
