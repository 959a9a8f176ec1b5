"""The gate before Transform: one verdict over the data, with findings in words, numbers and remedies."""
