"""The rules of the data gate, one module per kind of rule. Pure: they take statistics and return findings."""
