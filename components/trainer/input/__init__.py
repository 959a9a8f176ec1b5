"""The input of training: from files of tf.Examples to batches of static shape.

plan.py      decides what is kept where, and which host reads what; reads nothing
parsing.py   parses TFRecords, whole batches at a time
arrays.py    holds all rows in memory or in one mapped file: an epoch is a permutation of their numbers
stream.py    streams data that does not fit: files interleaved anew in every epoch, shuffled within a window
examples.py  chooses between arrays.py and stream.py
"""
