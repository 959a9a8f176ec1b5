"""Asks the trainer's own rules about the machines of a cloud run, before anything is sent there.

The training would ask them itself when it begins, after hours of other tasks and on machines that are paid
for by then.
"""

from slipway.components.errors import ComponentError
from slipway.components.trainer.device_rules import (
    is_divided_by_tensorflow,
    require_agreeing_hosts,
    require_custom_loop_gets,
    require_no_model_parallelism,
    require_one_shape,
    require_one_step_of_torch,
    require_plain_steps,
)
from slipway.components.trainer.devices.evidence import Kind
from slipway.components.trainer.global_batch import require_divisible
from slipway.components.trainer.settings.step import StepSettings
from slipway.pipeline.config.train import TrainConfig
from slipway.pipeline.errors import ConfigError, raised_as


def require_trainable(train: TrainConfig, *, kind: Kind, devices: int, hosts: int = 1, where: str) -> None:
    """Reject settings that a training refuses on such devices.

    Args:
        train: with the folder in which the run keeps its checkpoints.
        devices: on all hosts; >= 1.
        where: the devices in words, such as "v5e-8".

    Raises:
        ConfigError: the first rule that is broken, as the trainer says it.
    """
    with raised_as(ConfigError, ComponentError):
        require_no_model_parallelism(train.model_parallel, backend=train.backend)
    replicas, left = divmod(devices, train.model_parallel)
    if left:
        raise ConfigError(
            f"train.model_parallel ({train.model_parallel}) must divide the {devices} devices of {where}"
        )
    try:
        require_divisible(train.batch_size, replicas=replicas, hosts=hosts)
    except ComponentError as error:
        raise ConfigError(f"{error.message} of {where}", hint=error.hint) from error
    with raised_as(ConfigError, ComponentError):
        _require_steps(train, kind=kind, replicas=replicas, where=where)
        if train.input.bucket_by_length:
            require_one_shape(backend=train.backend, kind=kind)
        has_best_nowhere = train.serves_best and train.checkpoint.folder is None
        require_agreeing_hosts(hosts, blow_up=train.blow_up, has_best_nowhere=has_best_nowhere)


def _require_steps(train: TrainConfig, *, kind: Kind, replicas: int, where: str) -> None:
    # Imported here because each command of cloud_runner imports this module.
    from slipway.components.trainer.custom_fit import has_custom_fit, require_cpu
    from slipway.components.trainer.custom_functions import has_custom_loop

    if has_custom_fit(train.model):
        require_cpu(train.model, device=kind, backend=train.backend)
    step = StepSettings(**{name: getattr(train, name) for name in StepSettings.names()})
    require_one_step_of_torch(step, backend=train.backend)
    is_divided = is_divided_by_tensorflow(backend=train.backend, kind=kind, replicas=replicas)
    if has_custom_loop(train.model):
        require_custom_loop_gets(train.model, step, divided_by=where if is_divided else "")
    if is_divided:
        require_plain_steps(step, kind=kind)
