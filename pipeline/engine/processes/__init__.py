"""The processes of a run: a warm one with TFX imported, a fork server, a fork for each node."""
