"""Measurements of a data set's rows, kept so that later data can be compared with it."""
