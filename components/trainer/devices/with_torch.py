"""Opens PyTorch devices: the CPU or one GPU, in an interpreter that has torch."""

import os
import sys

from slipway.components.accelerators import hide_accelerators
from slipway.components.errors import ComponentError
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.devices.evidence import Kind
from slipway.components.trainer.devices.hosts import Hosts
from slipway.components.trainer.devices.machine import cpu_has_bfloat16, usable_cores


def open_device(kind: Kind, hosts: Hosts) -> Devices:
    """Open the CPU or the first GPU; Keras' PyTorch backend puts every variable there.

    Raises:
        ComponentError: torch cannot use the device, or there are several hosts.
    """
    if hosts.count > 1 or kind == "tpu":
        raise ComponentError(
            "train.backend torch trains on the CPU or one GPU of one host",
            hint="set train.backend to jax for TPUs and for several hosts",
        )
    if kind == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Keras uses a GPU whenever torch sees one
    # The Triton of torch.compile and TensorFlow, which reads the files, each bring an LLVM; two abort.
    sys.modules["triton"] = None  # type: ignore[assignment]
    import torch

    hide_accelerators()
    if kind == "gpu" and not torch.cuda.is_available():
        raise ComponentError("this torch sees no GPU", hint="install a build of torch for CUDA")
    torch.set_num_threads(usable_cores())
    if kind == "cpu":
        return Devices(
            kind="cpu",
            backend="torch",
            words=f"CPU, {usable_cores()} cores",
            has_bfloat16=cpu_has_bfloat16(),
        )
    return Devices(
        kind="gpu",
        backend="torch",
        words=f"1 GPU, {torch.cuda.get_device_name(0)}",
        has_bfloat16=torch.cuda.is_bf16_supported(),
    )
