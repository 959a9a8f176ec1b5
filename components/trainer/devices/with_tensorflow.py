"""Opens TensorFlow devices: a TPU through its resolver, GPUs with memory growth, or the CPU."""

from functools import partial
from typing import Any

from slipway.components.accelerators import hide_accelerators
from slipway.components.errors import ComponentError
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.devices.hosts import Hosts
from slipway.components.trainer.devices.machine import cpu_has_bfloat16, usable_cores

AHEAD = 2
"""Elements to prefetch to a device: one for the next call, and one on its way."""
_BFLOAT16_COMPUTE_CAPABILITY = (8, 0)  # CUDA C programming guide, table of arithmetic throughput: Ampere


def connect(tf: Any, address: str) -> Any:
    """Find, connect and initialise a TPU, in the order that its runtime requires; return the resolver.

    Args:
        address: "local", a name, or "grpc://host:port".

    Raises:
        Exception: whatever TensorFlow raises on failure.
    """
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=address)
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return resolver


def open_tpu(address: str, hosts: Hosts) -> Devices:
    """Open a TPU; the model must be built in its scope.

    Raises:
        ComponentError: TensorFlow cannot use the TPU, or there are several hosts.
    """
    _require_one_host(hosts)
    import tensorflow as tf

    try:
        strategy = tf.distribute.TPUStrategy(connect(tf, address))
    except Exception as error:
        raise ComponentError(f"the TPU {address!r} cannot be initialised: {error}") from error
    cores = strategy.num_replicas_in_sync
    return Devices(
        kind="tpu",
        backend="tensorflow",
        words=f"{cores} TPU cores at {address}",
        replicas=cores,
        has_bfloat16=True,
        strategy=strategy,
        scope=strategy.scope,
    )


def open_gpus(hosts: Hosts) -> Devices:
    """Open all GPUs that TensorFlow sees, with memory growth.

    Raises:
        ComponentError: TensorFlow sees none, or there are several hosts.
    """
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        raise ComponentError(
            "this TensorFlow sees no GPU",
            hint="install its CUDA libraries (tensorflow[and-cuda]) into the training interpreter",
        )
    _require_one_host(hosts)
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
    oldest = min(each.get("compute_capability", (0, 0)) for each in details)
    strategy = tf.distribute.MirroredStrategy() if len(gpus) > 1 else None
    own = (
        {"scope": strategy.scope}
        if strategy
        else {"prefetch_to_device": partial(prefetched, device="/gpu:0")}
    )
    return Devices(
        kind="gpu",
        backend="tensorflow",
        words=f"{len(gpus)} GPU, {details[0].get('device_name', 'of unknown name')}",
        replicas=len(gpus),
        has_bfloat16=oldest >= _BFLOAT16_COMPUTE_CAPABILITY,
        strategy=strategy,
        **own,
    )


def prefetched(batches: Any, *, device: str) -> Any:
    """Return the dataset with its next elements prefetched to a device; no transformation may follow.

    Args:
        batches: a tf.data dataset.
        device: the name of a device, such as "/gpu:0". Strategies prefetch to theirs by themselves.
    """
    import tensorflow as tf

    return batches.apply(tf.data.experimental.prefetch_to_device(device, AHEAD))


def open_cpu(hosts: Hosts, *, devices: int) -> Devices:
    """Open the CPU, as one device or split into several to rehearse on."""
    import tensorflow as tf

    _require_one_host(hosts)
    hide_accelerators()
    cores = usable_cores()
    tf.config.threading.set_intra_op_parallelism_threads(cores)
    strategy = None
    if devices > 1:
        # Each device's part of a step waits in a thread for the parts of the others. TensorFlow has one such
        # thread per core; with fewer cores than devices, steps were seen to hang.
        tf.config.threading.set_inter_op_parallelism_threads(cores + 2 * devices)
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * devices)
        strategy = tf.distribute.MirroredStrategy([f"/cpu:{number}" for number in range(devices)])
    return Devices(
        kind="cpu",
        backend="tensorflow",
        words=f"CPU, {cores} cores" + (f", as {devices} devices" if devices > 1 else ""),
        replicas=devices,
        has_bfloat16=cpu_has_bfloat16(),
        strategy=strategy,
        **({"scope": strategy.scope} if strategy else {}),
    )


def _require_one_host(hosts: Hosts) -> None:
    if hosts.count > 1:
        raise ComponentError(
            f"{hosts.source} names {hosts.count} hosts, and Keras 3 trains on several with JAX only",
            hint="set train.backend to jax, and train.interpreter to one that has it",
        )
