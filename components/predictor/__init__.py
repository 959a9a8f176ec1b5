"""Batch prediction: rows of files in, one line of JSON for each out."""
