"""What a model is built of. Data of the tests."""

UNITS = 8
