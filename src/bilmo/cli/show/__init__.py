"""What the commands print: tables, notes, progress bars, and the examples in help screens."""
