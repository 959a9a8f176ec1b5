"""Batch prediction: reads rows from files and writes a line of JSON for each."""
