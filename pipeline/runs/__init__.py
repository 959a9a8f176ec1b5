"""The run store: the records of runs, as types with one reader and one writer."""
