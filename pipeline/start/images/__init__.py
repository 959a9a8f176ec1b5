"""Implements `new` for images: a folder per class, or arrays in the layout of Keras' MNIST file.

As for tables, the data flows through `inspection` (files to facts), `deciding` (facts to a plan) and
`writing` (the plan as files); `begin` calls them in this order.
"""
