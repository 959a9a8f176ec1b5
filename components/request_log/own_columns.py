"""The names of the columns that the log of requests writes itself."""

AT, VERSION, ID, PREDICTION = OWN = ("logged_at", "logged_version", "logged_id", "logged_prediction")
"""When a row was answered (ISO 8601, UTC), by which version, its name where that is asked for, and what."""
