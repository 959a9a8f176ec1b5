"""Devices: the evidence for them, how they are opened, and the scope that the model is built in.

evidence.py         finds signs of a TPU or a GPU: variables, device files; touches nothing
hosts.py            finds which of how many hosts this one is
tpu_contact.py      checks that an address and its TPU answer, with time limits, in another process
opening.py          opens the devices for `train.device`: what to try, in which order, what to report
tpu_model.py        rejects what no TPU computes, and names the layer
with_tensorflow.py  resolver, initialisation and strategy; memory growth; several devices
with_jax.py         keras.distribution: data parallel and model parallel
with_torch.py       CPU or one GPU
"""
