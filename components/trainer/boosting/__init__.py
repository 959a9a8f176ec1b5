"""Boosted trees: fitted by scikit-learn, stored in arrays that a TensorFlow graph walks.

matrix.py    features as the matrices that scikit-learn takes
growing.py   finds the number of trees and the share of a linear model on held-out rows
arrays.py    grown trees as arrays
texts.py     a linear model of words, whose scores the trees take as input
layer.py     the Keras layers that walk the trees and sum the scores of words
rounding.py  merges numbers that differ only by rounding
"""
