"""The local engine: compiles a TFX pipeline, runs each node in its own process, remembers what it did."""
