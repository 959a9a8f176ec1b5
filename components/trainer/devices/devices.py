"""The opened devices that training computes on."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from slipway.components.trainer.devices.evidence import Kind
from slipway.components.trainer.devices.hosts import Hosts


@dataclass(frozen=True, kw_only=True)
class Devices:
    """The devices that training computes on, opened and ready.

    Attributes:
        kind: of device.
        backend: of Keras.
        words: for people, such as "8 TPU cores".
        replicas: copies of the model, over all hosts; the global batch is divided among them. >= 1.
        hosts: on which of how many hosts this process is.
        has_bfloat16: whether bfloat16 is computed by hardware.
        strategy: the `tf.distribute.Strategy` of several TensorFlow devices and of TPUs, else None.
        scope: a context to build and compile the model in.
        check: called with the built model; says in words how it is spread over the devices, "" where it is
            not, and raises a ComponentError if that is not as was asked.
        ahead: called with a tf.data dataset; returns one whose next elements are on the device before they
            are asked for. The same one where Keras or a strategy sees to that, and on a CPU.
        least: the least of a number over all hosts; each calls it.
        passed_over: what "auto" would have taken before this, and why it was not.
    """

    kind: Kind
    backend: str
    words: str
    replicas: int = 1
    hosts: Hosts = field(default_factory=Hosts)
    has_bfloat16: bool = False
    strategy: Any = None
    scope: Callable[[], AbstractContextManager[Any]] = nullcontext
    check: Callable[[Any], str] = lambda _model: ""
    ahead: Callable[[Any], Any] = lambda batches: batches
    least: Callable[[int], int] = lambda number: number
    passed_over: tuple[str, ...] = ()

    @property
    def divisor(self) -> int:
        """The number a batch must be a multiple of: replicas divide it, and hosts load their parts."""
        return math.lcm(self.replicas, self.hosts.count)

    @property
    def has_static_shapes_only(self) -> bool:
        """Whether every batch must have the same shape: on a TPU each new shape is compiled anew."""
        return self.kind == "tpu"

    @property
    def is_distributed(self) -> bool:
        """Whether a batch is divided among devices."""
        return self.replicas > 1 or self.strategy is not None
