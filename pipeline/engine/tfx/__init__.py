"""The interface to TFX: compiles pipelines, launches nodes, maintains the metadata store."""
