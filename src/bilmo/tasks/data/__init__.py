"""Forms of task data that several tasks read."""
