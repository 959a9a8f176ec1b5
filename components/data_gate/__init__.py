"""The data gate, which runs before Transform: one verdict on the data, with findings and their remedies."""
