"""The names of the columns that the request log itself adds."""

AT, VERSION, ID, PREDICTION = OWN = ("logged_at", "logged_version", "logged_id", "logged_prediction")
"""Time of the answer (ISO 8601, UTC), version, name of the row (only if enabled), and the answer."""
