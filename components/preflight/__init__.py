"""Predicts a training on a TPU without having one: does it compile, does it fit, how fast, at what cost.

question_and_answer.py      what is asked, and what the compiling process answers; plain values
compile_and_measure.py      that process: the training step through XLA and libtpu, in its own interpreter
shapes.py                   what is read out of the built model: its layers and their weights
model_traits.py             what trains otherwise than meant, by the model's objects
traced_program.py           the same by the traced program: constants, noise, loops, host callbacks
memory_fit.py               whether a step fits into a device's memory: the rule, and what it lacks
hlo.py                      bytes of the collectives in a compiled program's text
batch_search.py             the largest batch that the compiler accepts
chips.py                    peaks, bandwidths, memory and prices of the chips, with their sources
roofline.py                 from operations and bytes to a time
published_steps.py          times of steps that others have measured, with their sources
expected.py                 from those to the time to expect, beside the least
padding.py                  what a chip computes in vain for the sizes of a layer
evidence.py                 a finding, and what the rules look at
findings.py                 rules: what is wrong or wasteful, in words, with the remedy
trait_rules.py              those about what no compiler refuses
input_and_runtime_rules.py  those about files, buckets and the Python that trains
judge.py                    from an answer to a verdict
advice.py                   the table over slices, the recommendation, the keys to set
result.py                   the verdicts of a workload, as JSON and as text
compiler.py                 finds the interpreter that compiles, and asks it
transformed.py              what Transform left: the model's inputs, the files
component.py                the node before the Trainer

All but compile_and_measure.py, model_traits.py and shapes.py import neither Keras nor JAX.
"""
