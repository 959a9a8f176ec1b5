"""Raw files: where they are, and what may be ingested."""
