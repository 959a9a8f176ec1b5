"""The border to TFX: compiles pipelines, launches nodes, keeps the metadata store fit."""
