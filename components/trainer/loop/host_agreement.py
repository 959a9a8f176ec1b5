"""Checks that the hosts of a training agree: each computes its part of a step and waits for the others."""

from slipway.components.errors import ComponentError
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.devices.hosts import Hosts
from slipway.components.trainer.job import TrainingJob


def require_agreement(job: TrainingJob, hosts: Hosts) -> None:
    """Reject what each host would do at another step, or from files that only one of them has.

    Raises:
        ComponentError: the job goes back to a checkpoint when it blows up, or takes the best epoch's weights
            from a folder that the hosts do not share.
    """
    if hosts.count == 1:
        return
    if job.blow_up.trials:
        raise ComponentError(
            f"train.blow_up.trials ({job.blow_up.trials}) must be 0 on several hosts, but there are "
            f"{hosts.count}: each would notice a blown-up loss at another step",
            hint="set train.blow_up.trials to 0; a training that blows up then stops",
        )
    if job.serves_best and job.checkpoint_dir is None:
        raise ComponentError(
            f"the {hosts.count} hosts have no folder in common to take the best epoch's weights from, as "
            "train.early_stopping and train.checkpoint.serve_best want",
            hint="set train.checkpoint.folder to one that all hosts reach",
        )


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
