"""The Ingest component: finds raw files and converts them to examples."""
