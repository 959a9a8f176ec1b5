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
        words: a description, such as "8 TPU cores".
        replicas: copies of the model, over all hosts; the global batch is divided among them. >= 1.
        hosts: the hosts, and which of them this process is on.
        strategy: the `tf.distribute.Strategy` of several TensorFlow devices and of TPUs, else None.
        scope: makes a context to build and compile the model in.
        check_layout: called with the built model; describes how it is spread over the devices ("" if it is
            not), and raises a ComponentError if that is not as requested.
        prefetch_to_device: called with a tf.data dataset; returns one whose next elements are on the device
            before they are requested. The same dataset on a CPU, and where Keras or a strategy prefetches.
        min_over_hosts: returns the minimum of a number over all hosts, each of which must call it.
        sum_over_hosts: returns the sum of a number over all hosts, likewise.
        passed_over: what "auto" would have preferred, and why it was not used.
    """

    kind: Kind
    backend: str
    words: str
    replicas: int = 1
    hosts: Hosts = field(default_factory=Hosts)
    has_bfloat16: bool = False
    strategy: Any = None
    scope: Callable[[], AbstractContextManager[Any]] = nullcontext
    check_layout: Callable[[Any], str] = lambda _model: ""
    prefetch_to_device: Callable[[Any], Any] = lambda batches: batches
    min_over_hosts: Callable[[int], int] = lambda number: number
    sum_over_hosts: Callable[[int], int] = lambda number: number
    passed_over: tuple[str, ...] = ()

    @property
    def divisor(self) -> int:
        """The number that a batch must be a multiple of: replicas divide it, and hosts load their parts."""
        return math.lcm(self.replicas, self.hosts.count)

    @property
    def has_static_shapes_only(self) -> bool:
        """Whether every batch must have the same shape: a TPU compiles anew for each shape."""
        return self.kind == "tpu"

    @property
    def is_distributed(self) -> bool:
        """Whether a batch is divided among devices."""
        return self.replicas > 1 or self.strategy is not None
