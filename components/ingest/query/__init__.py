"""Rows by SQL: a query over files, databases and lake tables, kept as Parquet that Ingest reads."""
