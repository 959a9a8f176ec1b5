"""A package that a `module_file` imports: no wheel holds it. Data of the tests."""
