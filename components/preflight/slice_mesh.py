"""The devices of a TPU slice, as libtpu describes them, and how a training divides them. Needs JAX."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from slipway.components.errors import ComponentError
from slipway.components.preflight.question_and_answer import Question, Slice
from slipway.components.trainer.devices.with_jax import BATCH_AXIS, MODEL_AXIS

ANOTHER_LIBTPU = "make tpu-compiler, which installs the libtpu that our table of slices is of"


class UnknownSliceError(ComponentError):
    """The installed libtpu does not describe a slice, or describes another one than our table has."""


def mesh_of(question: Question) -> Any:
    """Return the mesh of the slice's devices: replicas by the devices that share one; of one CPU without it.

    Raises:
        UnknownSliceError: see `topology_devices`.
    """
    import jax
    import numpy as np

    devices = topology_devices(question.slice) if question.slice.generation else jax.devices("cpu")[:1]
    shared = question.model_parallel if question.slice.generation else 1
    shape = (len(devices) // shared, shared)
    return jax.sharding.Mesh(np.array(devices).reshape(shape), (BATCH_AXIS, MODEL_AXIS))


@contextmanager
def distributed_as_in_training(question: Question, mesh: Any) -> Iterator[None]:
    """Give the user's code the `keras.distribution` that a training on several devices has, see `with_jax`.

    A layer may take the mesh from it, such as for `jax.shard_map`. Its weights stay in the CPU's memory, as
    the devices of the mesh are only described.

    Args:
        mesh: see `mesh_of`.
    """
    import keras

    if not question.has_several_devices:
        yield
        return
    before = keras.distribution.distribution()
    keras.distribution.set_distribution(_distribution(keras, question, mesh.devices))
    try:
        yield
    finally:
        keras.distribution.set_distribution(before)


def _distribution(keras: Any, question: Question, devices: Any) -> Any:
    part = keras.distribution
    if question.model_parallel == 1:
        line = part.DeviceMesh((devices.size,), [BATCH_AXIS], devices.reshape(-1))
        found = part.DataParallel(device_mesh=line, auto_shard_dataset=False)
    else:
        layouts = part.LayoutMap(part.DeviceMesh(devices.shape, [BATCH_AXIS, MODEL_AXIS], devices))
        for pattern, axes in question.layout.items():
            layouts[pattern] = tuple(axes)
        found = part.ModelParallel(layout_map=layouts, batch_dim_name=BATCH_AXIS, auto_shard_dataset=False)
    found.get_variable_layout = lambda _: None
    return found


def topology_devices(wanted: Slice) -> Any:
    """Return the devices of a slice, as libtpu describes them without a TPU.

    Raises:
        UnknownSliceError: libtpu cannot be loaded, or does not know the slice as our table has it.
    """
    from jax.experimental import topologies

    name = {"v7": "tpu7x"}.get(wanted.generation, wanted.generation)
    arguments: dict[str, str | tuple[int, int, int]] = {}
    # These hosts have one chip and eight chips; all others have four, which is libtpu's default.
    if bounds := {"1x1": (1, 1, 1), "2x4": (2, 4, 1)}.get(wanted.topology):
        arguments["chips_per_host_bounds"] = bounds
    if wanted.generation == "v4":  # the two cores of a chip as one device, as JAX has them
        arguments["chip_config_name"] = "megacore"
    try:
        devices = topologies.get_topology_desc(f"{name}:{wanted.topology}", "tpu", **arguments).devices
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise UnknownSliceError(f"libtpu does not describe it ({reason})", hint=ANOTHER_LIBTPU) from error
    hosts = len({each.process_index for each in devices})
    for kind, known, ours in (("devices", len(devices), wanted.devices), ("hosts", hosts, wanted.hosts)):
        if known != ours:
            raise UnknownSliceError(f"libtpu knows {known} {kind} of it, not {ours}", hint=ANOTHER_LIBTPU)
    return devices
