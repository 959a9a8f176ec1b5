"""The TPU slices that Vertex AI trains on: name, machine, topology, hosts, chips, frameworks. Pure.

The generations are those of `slipway.components.preflight.chip_specs`.

Sources: "Training with TPU accelerators" and "Create custom training jobs", documentation of Vertex AI, for
v2, v3 and v5e, and for a slice being one replica. `MachineSpec.tpu_topology` says that topologies are those
of GKE, whose "Plan TPUs in GKE" lists the machines of v6e and v7; the version of Vertex AI's own table that
we could read did not list them. Frameworks: TensorFlow up to v5e, from v6e on JAX and PyTorch only,
documentation of Cloud TPU.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypedDict

from slipway.components.nearest import nearest_first
from slipway.components.preflight.chip_specs import CHIPS
from slipway.pipeline.errors import ConfigError


class MachineSpec(TypedDict, total=False):
    """The JSON of Vertex AI's MachineSpec."""

    machineType: str
    acceleratorType: str
    acceleratorCount: int
    tpuTopology: str


@dataclass(frozen=True)
class TpuSlice:
    """One TPU slice.

    Attributes:
        generation: key of `CHIPS`.
        machine: of one replica, which a slice is, however many hosts it has.
        hosts: the number of machines that run the training process.
        chips: the number of chips on all hosts.
        has_tensorflow: whether TensorFlow can compute on it; JAX always can.
    """

    generation: str
    machine: MachineSpec
    hosts: int
    chips: int
    has_tensorflow: bool

    @property
    def devices(self) -> int:
        """The number of devices that divide the batch: chips, or their cores if each core is a device."""
        return self.chips * CHIPS[self.generation].devices

    @property
    def name(self) -> str:
        """The slice's name in `train.tpu`."""
        return f"{self.generation}-{self.devices}"


# Number of chips -> topology, for slices on several hosts with four chips each.
_TOPOLOGIES = {16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16", 256: "16x16"}


def _table() -> Iterator[TpuSlice]:
    for generation in ("v2", "v3"):
        machine: MachineSpec = {
            "machineType": "cloud-tpu",
            "acceleratorType": f"TPU_{generation.upper()}",
            "acceleratorCount": 8,
        }
        yield TpuSlice(generation, machine, hosts=1, chips=4, has_tensorflow=True)
    for generation, machines, has_tensorflow in (
        ("v5e", "ct5lp-hightpu", True),
        ("v6e", "ct6e-standard", False),
    ):
        for chips, topology in {1: "1x1", 4: "2x2", 8: "2x4", **_TOPOLOGIES}.items():
            each = min(chips, 4) if chips != 8 else 8
            yield TpuSlice(
                generation,
                {"machineType": f"{machines}-{each}t", "tpuTopology": topology},
                hosts=chips // each,
                chips=chips,
                has_tensorflow=has_tensorflow,
            )
    machine = {"machineType": "tpu7x-standard-4t", "tpuTopology": "2x2x1"}
    yield TpuSlice("v7", machine, hosts=1, chips=4, has_tensorflow=False)


TPU_SLICES: Mapping[str, TpuSlice] = {each.name: each for each in _table()}
IMAGE_TARGETS: Mapping[str, str] = {"jax": "training-tpu", "tensorflow": "training-tpu-tensorflow"}
"""The target of the Dockerfile that trains on TPUs, by Keras backend."""


def tpu_slice(name: str, *, backend: str) -> TpuSlice:
    """Return the slice of that name, for a training with a Keras backend.

    Raises:
        ConfigError: there is no such slice, or the backend does not train on it; names the nearest slices,
            or a backend that does.
    """
    if name not in TPU_SLICES:
        near = nearest_first(name, TPU_SLICES)[:3]
        raise ConfigError(
            f"train.tpu: Vertex AI has no slice {name!r}; nearest: {', '.join(near)}"
            if name
            else "train.device is tpu, but train.tpu names no slice to train on",
            hint=f"slices: {', '.join(TPU_SLICES)}",
        )
    found = TPU_SLICES[name]
    jax = "--set train.backend=jax"
    if backend == "torch":
        raise ConfigError("train.backend is torch, which cannot train on a TPU here", hint=jax)
    if backend == "tensorflow" and not found.has_tensorflow:
        raise ConfigError(
            f"train.backend is tensorflow, which does not run on {name}: from v6e on, TPUs run JAX and "
            "PyTorch only",
            hint=f"{jax}, or a slice up to v5e",
        )
    if backend == "tensorflow" and found.hosts > 1:
        raise ConfigError(
            f"train.backend is tensorflow, and {name} has {found.hosts} hosts: Keras 3 trains on several "
            "with JAX only",
            hint=f"{jax}, or a slice of one host: v5e-8",
        )
    return found
