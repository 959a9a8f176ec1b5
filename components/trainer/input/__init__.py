"""The input of training: from files of tf.Examples to batches of static shape.

plan.py      what is kept where, and who reads what; nothing is read
parsing.py   TFRecords to parsed batches, whole batches at a time
arrays.py    all rows in memory or in one mapped file: an epoch is a permutation of their numbers
stream.py    what does not fit: files interleaved anew in every epoch, shuffled within a window
examples.py  picks one of the two
"""
