"""Predicts a training on a TPU without a TPU: whether it compiles and fits, its speed and its cost.

question_and_answer.py      the question to the compiling process, and its answer; plain values
compile_and_measure.py      the compiling process, in another interpreter: the step through XLA and libtpu
shapes.py                   facts read from the built model: its layers and their weights
model_traits.py             unintended or costly traits of the step, found in the model's objects
traced_program.py           the same, found in the traced program: constants, noise, loops, host callbacks
memory_fit.py               the rule whether a step fits into a device's memory, and the shortage if not
hlo.py                      the collectives in a compiled program's text
torus.py                    which links a group of chips can use
batch_search.py             the search for the largest batch that the compiler accepts
chip_specs.py               peaks, bandwidths, memory and prices of the chips, with their sources
other_slices.py             slices that can be compiled for, but that Vertex AI does not rent
roofline.py                 the least time of a step and of its collectives, from operations and bytes
published_steps.py          step times measured and published by others, with their sources
expected.py                 the expected time of a step, from the published ones and the least time
padding.py                  work that a chip wastes on padding because of a layer's sizes
finding.py                  a finding, and the facts that the rules examine
step_rules.py               the rules: what is wrong or wasteful, in words, with the remedy
trait_rules.py              the rules about traits that no compiler refuses
input_and_runtime_rules.py  the rules about files, buckets and the Python that trains
verdict.py                  makes a verdict from an answer
amounts.py                  sizes and times in words
slice_layout.py             what each host reads, where the mesh lies, what each collective costs, in words
scaling.py                  what larger slices bring, and where more chips stop paying
advice.py                   the table of slices, the recommendation, the keys to set
result.py                   the verdicts of a workload, as JSON and as text
compiler.py                 finds the interpreter that compiles, and runs it
transformed.py              Transform's output: the model's inputs and the files
component.py                the node before the Trainer

All but compile_and_measure.py, model_traits.py and shapes.py import neither Keras nor JAX.
"""
