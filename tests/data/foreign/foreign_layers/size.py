"""A layer that a toy model is built of. Test data."""

UNITS = 8
