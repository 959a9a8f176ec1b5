"""The run store: the records of runs, in types with one reader and one writer."""
