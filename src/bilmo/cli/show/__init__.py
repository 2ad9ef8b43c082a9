"""All printing of the commands: tables, notes, progress bars, and the examples in help screens."""
