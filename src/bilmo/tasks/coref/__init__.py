"""Which mentions in a document mean the same person or thing."""
