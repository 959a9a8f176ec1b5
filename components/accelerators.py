"""Who may compute on an accelerator: the training process. All others keep to the CPU, or share a GPU.

TensorFlow takes nearly all memory of each GPU that it sees, so that a second process finds none. And a GPU
multiplies float32 with the ten bits of TF32 (NVIDIA, Ampere and newer), so that answers which are compared
within 1e-4 must all be computed on the CPU.
"""

import contextlib
import os

HIDDEN = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}
"""Variables that hide all GPUs, of NVIDIA or AMD, from a process."""


def share_gpus() -> None:
    """Has TensorFlow take a GPU's memory as it needs it, in this process and in those that it starts."""
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")


def keep_to_cpu() -> None:
    """Keeps TensorFlow in this process, but in none that it starts, off every accelerator."""
    # In a notebook the process may already be using them; then they are shared.
    with contextlib.suppress(RuntimeError):
        hide_accelerators()


def hide_accelerators() -> None:
    """Keeps TensorFlow off accelerators, where it only reads files or must compute on the CPU.

    Raises:
        RuntimeError: it has already started to compute.
    """
    import tensorflow as tf

    for kind in ("GPU", "TPU"):
        tf.config.set_visible_devices([], kind)
