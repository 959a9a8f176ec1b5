"""Implements the command `new`, which turns a file of examples into a workload: code that the user owns.

The data flows through `reading` (files to columns), `facts` (columns to their properties), `deciding` (the
role of each column, and why) and `writing` (the decisions as files); `command` calls them in this order.
"""
