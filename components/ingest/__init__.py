"""Ingest: finds raw files and converts them to examples."""
