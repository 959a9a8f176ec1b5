"""For unit tests of your own preprocessing: see "Test what you change" in docs/own-data.md."""
