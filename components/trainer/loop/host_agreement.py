"""Checks that the hosts of a training agree: each computes its part of a step and waits for the others."""

from slipway.components.errors import ComponentError
from slipway.components.trainer.device_rules import require_agreeing_hosts
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.devices.hosts import Hosts
from slipway.components.trainer.job import TrainingJob


def require_agreement(job: TrainingJob, hosts: Hosts) -> None:
    """Reject what each host would do at another step, or from files that only one of them has.

    Raises:
        ComponentError: the job goes back to a checkpoint when it blows up, or takes the best epoch's weights
            from a folder that the hosts do not share.
    """
    has_best_nowhere = job.serves_best and job.checkpoint_dir is None
    require_agreeing_hosts(hosts.count, blow_up=job.blow_up, has_best_nowhere=has_best_nowhere)


def require_same_step(step: int, devices: Devices) -> None:
    """Refuse to resume from different steps; waits for all hosts.

    Args:
        step: of the checkpoint that this host would resume from.

    Raises:
        ComponentError: another host would resume from another step.
    """
    least, greatest = devices.min_over_hosts(step), -devices.min_over_hosts(-step)
    if least != greatest:
        raise ComponentError(
            f"the hosts would continue from different checkpoints: this one after step {step}, "
            f"all of them after steps {least} to {greatest}",
            hint="set train.checkpoint.folder to one that all hosts reach, or remove the checkpoints",
        )
