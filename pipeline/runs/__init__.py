"""The run store: what is kept of each run, in types with one reader and one writer."""
