"""Measures a data set's rows, and keeps the result so that later data can be compared with it."""
