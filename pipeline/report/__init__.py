"""Renders a run as one self-contained HTML report page, from the files that the run wrote."""
