"""What commands print: tables, progress, learned weights."""
