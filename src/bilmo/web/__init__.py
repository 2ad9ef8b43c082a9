"""An HTTP server for models and fitted tasks, and a page for a browser."""
