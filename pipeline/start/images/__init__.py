"""`new` for images: a folder of them for each class, or arrays in the layout of Keras' MNIST file.

`looking` (files to facts), `deciding` (facts to a plan), `writing` (the plan as files), `begin` (these in
order), as for tables.
"""
