"""Boosted trees: fitted by scikit-learn, laid into arrays that a TensorFlow graph walks.

matrix.py    features as scikit-learn takes them
growing.py   how many trees, and how much a linear model adds: by rows that were held out
arrays.py    grown trees as arrays
texts.py     a linear model of words, whose answers the trees see
layer.py     the Keras layers that walk the trees and add up the words
"""
