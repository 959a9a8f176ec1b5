"""Predicts a training on a TPU without having one: does it compile, does it fit, how fast, at what cost.

request.py                  what is asked, and what the compiling process answers; plain values
compile_and_measure.py      that process: the training step through XLA and libtpu, in its own interpreter
shapes.py                   what is read out of the built model: layers, weights, host callbacks
memory_fit.py               what a compiled program holds of a device's memory, or lacks
hlo.py                      bytes of the collectives in a compiled program's text
batch_search.py             the largest batch that the compiler accepts
chips.py                    peaks, bandwidths, memory and prices of the chips, with their sources
roofline.py                 from operations and bytes to a time
padding.py                  what a chip computes in vain for the sizes of a layer
evidence.py                 a finding, and what the rules look at
findings.py                 rules: what is wrong or wasteful, in words, with the remedy
input_and_runtime_rules.py  those about files, buckets and the Python that trains
judge.py                    from an answer to a verdict
advice.py                   the table over slices, the recommendation, the keys to set
result.py                   the verdicts of a workload, as JSON and as text
compiler.py                 finds the interpreter that compiles, and asks it
transformed.py              what Transform left: the model's inputs, the files
component.py                the node before the Trainer

All but compile_and_measure.py and shapes.py import neither Keras nor JAX.
"""
