"""Opens the devices for `train.device`: what to try, in which order, and what to report."""

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import replace

from slipway.components.errors import ComponentError
from slipway.components.trainer.device_rules import require_no_model_parallelism
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.devices.evidence import LOOKED_FOR, Evidence, Kind, find_evidence
from slipway.components.trainer.devices.hosts import Hosts, find_hosts
from slipway.components.trainer.devices.tpu_contact import count_tpu_cores
from slipway.components.trainer.settings.compute import ComputeSettings

_IN_ORDER: tuple[Kind, ...] = ("tpu", "gpu", "cpu")


def open_devices(settings: ComputeSettings, environment: Mapping[str, str]) -> Devices:
    """Open what `train.device` names. Must be called before anything of Keras or the backend is used.

    "auto" tries what there is evidence for, a TPU before a GPU, falls back to the CPU, and records what it
    passed over; one of several hosts falls back to nothing, since the others would wait for it. If any other
    device is missing, the error says what was looked for and what was found.

    Raises:
        ComponentError: the device cannot be opened, or the interpreter lacks the backend.
    """
    require_backend(settings.backend)
    evidence = find_evidence(environment, address=settings.tpu_address)
    hosts = find_hosts(environment)
    if settings.device != "auto":
        return _open(_kind(settings.device), evidence, hosts, settings)
    passed_over: list[str] = []
    for kind in kinds_to_try(evidence, settings.backend):
        try:
            return replace(_open(kind, evidence, hosts, settings), passed_over=tuple(passed_over))
        except ComponentError as error:
            if kind == "cpu":
                raise
            if hosts.count > 1:
                raise ComponentError(
                    f"host {hosts.index} of {hosts.count} cannot use its {kind.upper()}: {error.message}",
                    hint=error.hint or "set train.device to a kind that all hosts can use",
                ) from error
            passed_over.append(f"{kind.upper()} not used: {error.message}")
    raise AssertionError("the CPU is always tried")


def kinds_to_try(evidence: tuple[Evidence, ...], backend: str) -> tuple[Kind, ...]:
    """Return the kinds that "auto" tries: those with evidence that the backend can use, then the CPU."""
    found = {each.kind for each in evidence} - ({"tpu"} if backend == "torch" else set())
    return tuple(kind for kind in _IN_ORDER if kind in found or kind == "cpu")


def require_backend(backend: str) -> None:
    """Reject an interpreter that does not have the backend.

    Raises:
        ComponentError: the backend's module cannot be found.
    """
    if importlib.util.find_spec(backend) is None:
        remedy = (
            "`make jax` makes .venv-jax; then set train.interpreter to .venv-jax/bin/python"
            if backend == "jax"
            else f"install {backend} into an environment beside keras, tensorflow and numpy, and name its "
            "Python in train.interpreter"
        )
        raise ComponentError(f"train.backend is {backend}, which {sys.executable} does not have", hint=remedy)


def _open(kind: Kind, evidence: tuple[Evidence, ...], hosts: Hosts, settings: ComputeSettings) -> Devices:
    signs = [each for each in evidence if each.kind == kind]
    if kind != "cpu" and not signs:
        others = "; ".join(each.words for each in evidence) or "nothing"
        raise ComponentError(
            f"train.device is {kind}, but there is none: looked for {LOOKED_FOR[kind]}; found {others}",
            hint="set train.device to auto or cpu, or run where there is one",
        )
    if kind == "tpu" and settings.backend != "torch":
        # In another process, because a TPU that does not answer blocks its caller.
        count_tpu_cores(settings.backend, signs[0].address)
    require_no_model_parallelism(settings.model_parallel, backend=settings.backend)
    return _opened(kind, signs, hosts, settings)


def _opened(kind: Kind, signs: list[Evidence], hosts: Hosts, settings: ComputeSettings) -> Devices:
    if settings.backend == "jax":
        from slipway.components.trainer.devices import with_jax

        return with_jax.open_devices(kind, hosts, settings)
    if settings.backend == "torch":
        from slipway.components.trainer.devices import with_torch

        return with_torch.open_device(kind, hosts)
    from slipway.components.trainer.devices import with_tensorflow

    if kind == "tpu":
        return with_tensorflow.open_tpu(signs[0].address, hosts)
    if kind == "gpu":
        return with_tensorflow.open_gpus(hosts)
    return with_tensorflow.open_cpu(hosts, devices=settings.cpu_devices)


def _kind(device: str) -> Kind:
    return next(kind for kind in _IN_ORDER if kind == device)
