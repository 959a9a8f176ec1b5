"""Opens JAX devices through keras.distribution: one, data parallel or model parallel, on one host or more."""

import math
import os
import re
import sys
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

from slipway.components.accelerators import hide_accelerators
from slipway.components.errors import ComponentError
from slipway.components.python_process import end_at_once
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.devices.evidence import Kind
from slipway.components.trainer.devices.hosts import Hosts
from slipway.components.trainer.devices.machine import cpu_has_bfloat16, usable_cores
from slipway.components.trainer.devices.plain_attention import keep_plain_attention
from slipway.components.trainer.settings.compute import ComputeSettings

BATCH_AXIS, MODEL_AXIS = "batch", "model"
_PLATFORMS: dict[Kind, str] = {"tpu": "tpu", "gpu": "cuda", "cpu": "cpu"}
_JAX_KINDS: dict[Kind, str] = {"tpu": "tpu", "gpu": "gpu", "cpu": "cpu"}
PARTING_LIMIT_S = 5.0
"""Seconds that a failed host waits for the others, which may be about to report the same failure."""


def open_devices(kind: Kind, hosts: Hosts, settings: ComputeSettings) -> Devices:
    """Open all devices of one kind.

    Args:
        kind: the kind of device; JAX is kept from falling back to another.
        hosts: if there are several, this waits for all of them.
        settings: give the number of CPU devices, and the layout for model parallelism.

    Raises:
        ComponentError: JAX cannot open the devices, or they cannot be divided as requested.
    """
    _prepare(kind, settings)
    try:
        import jax
    except ImportError as error:
        raise ComponentError(f"JAX cannot be imported: {error}") from error
    # If "auto" has tried another device before, JAX is already imported, and has read the variable.
    jax.config.update("jax_platforms", os.environ["JAX_PLATFORMS"])
    import keras

    hide_accelerators()  # TensorFlow only reads the files
    if kind == "tpu":
        keep_plain_attention()
    try:
        if hosts.count > 1:
            jax.distributed.initialize(hosts.coordinator, hosts.count, hosts.index)
        names = keras.distribution.list_devices(_JAX_KINDS[kind])
    except Exception as error:
        raise ComponentError(f"JAX cannot use the {kind.upper()}: {str(error).splitlines()[0]}") from error
    shared = settings.model_parallel
    if len(names) % shared:
        raise ComponentError(
            f"train.model_parallel ({shared}) must divide the {len(names)} devices",
            hint=f"use one of {_divisors(len(names))}",
        )
    distribution = None
    if shared > 1:
        distribution = _model_parallel(keras, names, shared, settings.layout)
    elif len(names) > 1:
        distribution = keras.distribution.DataParallel(devices=names, auto_shard_dataset=False)
    if distribution is not None:
        # Set for the whole process: fit and evaluate need it as well as build_model.
        keras.distribution.set_distribution(distribution)
    described = jax.devices(_JAX_KINDS[kind])[0].device_kind
    return Devices(
        kind=kind,
        backend="jax",
        words=_words(kind, described, len(names), shared, hosts),
        replicas=len(names) // shared,
        hosts=hosts,
        has_bfloat16=cpu_has_bfloat16() if kind == "cpu" else True,
        min_over_hosts=(lambda number: min(_of_all_hosts(number))) if hosts.count > 1 else int,
        sum_over_hosts=(lambda number: sum(_of_all_hosts(number))) if hosts.count > 1 else int,
        check_layout=lambda model: require_layout(model, settings.layout) if shared > 1 else "",
    )


def is_one_of_several_hosts() -> bool:
    """Return True if this process has opened devices together with other hosts."""
    jax = sys.modules.get("jax")
    return jax is not None and bool(jax.distributed.is_initialized())


def leave(code: int) -> NoReturn:
    """End this process; if it failed as one of several hosts, do not wait for the others for long.

    At exit, JAX waits five minutes for the other hosts. Those wait in a collective sum for the failed host
    until it is gone. Then their sum fails on a CPU, and JAX ends them in any case: at once if host 0 is gone,
    and after 100 s without a sign of life from another host.

    Args:
        code: the exit code; 0: all went well, and the hosts wait for each other.
    """
    if code and is_one_of_several_hosts():
        parting = threading.Thread(target=sys.modules["jax"].distributed.shutdown, daemon=True)
        parting.start()
        parting.join(PARTING_LIMIT_S)
        end_at_once(code)
    sys.exit(code)


def require_layout(model: Any, layout: Mapping[str, tuple[str | None, ...]]) -> str:
    """Reject a layout with a pattern that matches no variable, which Keras would ignore silently.

    Args:
        model: built.
        layout: maps a pattern of a whole variable path to the axis that divides each dimension.

    Returns:
        How much of the model one device holds, in words.

    Raises:
        ComponentError: a pattern matches nothing, a variable's rank does not suit it, a variable that should
            be divided is whole on each device, or its parts are on several hosts.
    """
    variables = [*model.variables]
    for pattern, axes in layout.items():
        matched = [each for each in variables if re.fullmatch(pattern, each.path)]
        if not matched:
            there = ", ".join(sorted(each.path for each in model.trainable_variables)[:12])
            raise ComponentError(
                f"train.layout: {pattern!r} matches no variable; there are {there}",
                hint="a pattern must match the whole path, as '.*dense.*kernel'",
            )
        for each in matched:
            if each.path in layout and each.path != pattern:
                continue  # Keras takes a path that is written out before all patterns
            if len(each.shape) != len(axes):
                raise ComponentError(
                    f"train.layout: {pattern!r} names {len(axes)} dimensions, but {each.path} "
                    f"has {len(each.shape)}: {tuple(each.shape)}"
                )
            if MODEL_AXIS in axes and _share(each) == 1:
                raise ComponentError(f"train.layout: {each.path} is not divided, though {pattern!r} says so")
            _require_whole_on_this_host(each)
    held = sum(_share(each) * math.prod(each.shape) for each in variables)
    total = sum(math.prod(each.shape) for each in variables)
    return f"each device holds {held:,.0f} of the model's {total:,} numbers"


def _of_all_hosts(number: int) -> list[int]:
    """Return the numbers that all hosts pass; waits for them."""
    import numpy as np
    from jax.experimental import multihost_utils

    return [int(each) for each in multihost_utils.process_allgather(np.int64(number))]


def _share(variable: Any) -> float:
    """Return the share of a variable that is on one device."""
    whole = math.prod(variable.shape)
    return math.prod(variable.value.addressable_shards[0].data.shape) / whole if whole else 1.0


def _require_whole_on_this_host(variable: Any) -> None:
    """Reject a variable whose parts are on several hosts, none of which could save it."""
    parts = {str(each.index): each.data.size for each in variable.value.addressable_shards}
    if sum(parts.values()) < math.prod(variable.shape):
        raise ComponentError(
            f"train.model_parallel: this host has only {sum(parts.values())} of the "
            f"{math.prod(variable.shape)} numbers of {variable.path}",
            hint="set a smaller one: each copy of the model must lie on the devices of one host",
        )


def _prepare(kind: Kind, settings: ComputeSettings) -> None:
    """Set the variables that JAX reads when it is imported."""
    os.environ["JAX_PLATFORMS"] = _PLATFORMS[kind] if kind == "cpu" else f"{_PLATFORMS[kind]},cpu"
    # Allocate memory as needed, not three quarters of it at once: TensorFlow and other processes need some
    # too.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if kind == "cpu":
        os.environ["NPROC"] = str(usable_cores())
        if settings.cpu_devices > 1:
            flag = f"--xla_force_host_platform_device_count={settings.cpu_devices}"
            os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()


def _model_parallel(
    keras: Any, names: list[str], shared: int, layout: Mapping[str, tuple[str | None, ...]]
) -> Any:
    mesh = keras.distribution.DeviceMesh((len(names) // shared, shared), [BATCH_AXIS, MODEL_AXIS], names)
    layout_map = keras.distribution.LayoutMap(mesh)
    for pattern, axes in layout.items():
        layout_map[pattern] = tuple(axes)
    return keras.distribution.ModelParallel(
        layout_map=layout_map, batch_dim_name=BATCH_AXIS, auto_shard_dataset=False
    )


def _words(kind: Kind, described: str, count: int, shared: int, hosts: Hosts) -> str:
    if kind == "cpu":
        words = f"CPU, {usable_cores()} cores" + (f", as {count} devices" if count > 1 else "")
    else:
        words = f"{count} {kind.upper()} devices, {described}"
    words += f", each copy of the model on {shared}" if shared > 1 else ""
    return words + (f", host {hosts.index} of {hosts.count}" if hosts.count > 1 else "")


def _divisors(count: int) -> str:
    return ", ".join(str(number) for number in range(1, count + 1) if count % number == 0)
