"""A module beside the `module_file` that imports it. Data of the tests."""

WORD = "first"
