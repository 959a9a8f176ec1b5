"""The command `new`: from a file of examples to a workload, as code that the user owns.

The way of the data: `reading` (files to columns), `facts` (columns to what they hold), `deciding` (what
becomes of each column, and why), `writing` (the decisions as files), `command` (these in order).
"""
