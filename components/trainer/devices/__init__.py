"""Devices: the evidence for them, how they are opened, and the scope that the model is built in.

evidence.py         what speaks for a TPU or a GPU: variables, device files; nothing is touched
hosts.py            which of how many hosts this one is
tpu_contact.py      is an address alive, does the TPU answer: with time limits, outside of this process
opening.py          from `train.device` to opened devices: what to try, in which order, what to say
tpu_model.py        what no TPU computes, refused with its layer named
with_tensorflow.py  resolver, initialisation and strategy; memory growth; several devices
with_jax.py         keras.distribution: data parallel and model parallel
with_torch.py       CPU or one GPU
"""
