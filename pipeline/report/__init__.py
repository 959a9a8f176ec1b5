"""A run as one HTML page that needs nothing else: gathered from the run's files, drawn, written."""
