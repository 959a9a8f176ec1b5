"""The local engine: compiles a TFX pipeline, runs each node in a process of its own, and remembers what it did."""
