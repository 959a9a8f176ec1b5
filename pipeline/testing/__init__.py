"""For unit tests of your own preprocessing, models and components: see docs/testing.md."""
