"""Tasks on top of the layers: one folder per task, and one line per task in `all.py`."""
