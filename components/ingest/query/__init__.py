"""Runs an SQL query over files, databases and lake tables, and keeps its rows as Parquet for Ingest."""
