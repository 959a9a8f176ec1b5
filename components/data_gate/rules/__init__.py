"""The rules of the data gate, one module for each kind. Pure: numbers in, findings out."""
