"""An HTTP server for models and fitted tasks, and a page that shows what vectors know."""
