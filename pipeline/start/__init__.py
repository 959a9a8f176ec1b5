"""The command `new`: from a file of examples to a workload, as code that the user owns.

The path of the data: `reading` (files to columns), `facts` (columns to their properties), `deciding` (the
role of each column, and why), `writing` (the decisions as files), `command` (these in order).
"""
