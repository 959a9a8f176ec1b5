"""A run as one self-contained HTML page: gathered from the run's files, drawn, written."""
