"""The processes of a run: a warm one with TFX imported, a fork server, and a fork for each node."""
