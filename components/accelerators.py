"""Keeps accelerators for the training process: all other processes use the CPU, or share a GPU.

TensorFlow takes nearly all memory of each GPU that it sees, so a second process finds none. Besides, NVIDIA
GPUs since Ampere multiply float32 as TF32, with a 10-bit mantissa, so predictions that are compared within
1e-4 must all be computed on the CPU.
"""

import contextlib
import os

HIDDEN = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}
"""Environment variables that hide all NVIDIA and AMD GPUs from a process."""


def share_gpus() -> None:
    """Let TensorFlow allocate GPU memory as needed, in this process and its children."""
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")


def keep_to_cpu() -> None:
    """Keep TensorFlow off every accelerator, in this process but not in its children."""
    # A notebook's process may already use them; then it shares them.
    with contextlib.suppress(RuntimeError):
        hide_accelerators()


def hide_accelerators() -> None:
    """Hide accelerators from TensorFlow, in a process that only reads files or must compute on the CPU.

    Raises:
        RuntimeError: TensorFlow has already initialized its devices.
    """
    import tensorflow as tf

    for kind in ("GPU", "TPU"):
        tf.config.set_visible_devices([], kind)
