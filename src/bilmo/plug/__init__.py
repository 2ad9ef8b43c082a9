"""Bridges to other libraries: one file for each, imported only when it is used, with an extra of its own."""
