"""What a training refuses because of its devices and hosts. Pure.

A training asks when it has opened its devices; what sends one to other machines asks before, see
`slipway.pipeline.cloud.trainable`, and so does the preflight.
"""

from collections.abc import Iterator

from slipway.components.errors import ComponentError
from slipway.components.trainer.buckets import ONE_SHAPE_ON_TPU
from slipway.components.trainer.settings.blow_up import BlowUpSettings
from slipway.components.trainer.settings.step import StepSettings


def is_divided_by_tensorflow(*, backend: str, kind: str, replicas: int) -> bool:
    """Return True if TensorFlow's strategies divide the batches: those of a TPU, and of several devices."""
    return backend == "tensorflow" and (kind == "tpu" or replicas > 1)


def require_no_model_parallelism(model_parallel: int, *, backend: str) -> None:
    """Reject devices that share a copy of the model, with another backend than JAX.

    Raises:
        ComponentError: they would.
    """
    if model_parallel > 1 and backend != "jax":
        raise ComponentError(
            f"train.model_parallel is {model_parallel}, which {backend} does not have",
            hint="set train.backend to jax, and train.interpreter to one that has it",
        )


def require_plain_steps(step: StepSettings, *, kind: str, accumulated: int = 1) -> None:
    """Reject settings with which Keras 3 fails under tf.distribute (Keras 3.15, TensorFlow 2.21).

    Args:
        accumulated: the steps whose gradients the model's own optimizer averages.

    Raises:
        ComponentError: names them.
    """
    wrong = {
        "train.steps_per_execution": (step.steps_per_execution or 1) > 1,
        "train.xla": step.xla == "always" and kind != "tpu",
        "train.accumulate_steps": step.accumulate_steps > 1,
        "gradient_accumulation_steps of the optimizer": accumulated > 1 and step.accumulate_steps == 1,
    }
    if names := ", ".join(name for name, is_wrong in wrong.items() if is_wrong):
        raise ComponentError(
            f"{names} cannot be used by Keras 3 with several TensorFlow devices or a TPU",
            hint="leave it at its default, or set train.backend to jax, where it works",
        )


def require_custom_loop_gets(dotted_path: str, step: StepSettings, *, divided_by: str) -> None:
    """Reject settings that a custom training loop cannot follow.

    Args:
        dotted_path: of the model, whose module has the loop.
        divided_by: the TensorFlow devices that divide each batch, in words; "" if none do.

    Raises:
        ComponentError: several TensorFlow devices divide each batch, which only Keras' own fit does, or there
            are several steps per execution.
    """
    where = f"{dotted_path.rpartition('.')[0]}.fit"
    if divided_by:
        raise ComponentError(
            f"{where} takes the steps itself and gets whole batches, which {divided_by} would divide",
            hint="train on one device, set train.backend to jax, or write a train_step of the model",
        )
    if (step.steps_per_execution or 1) > 1:
        raise ComponentError(
            f"train.steps_per_execution is {step.steps_per_execution}, and {where} takes steps itself",
            hint="leave it out, or write a train_step of the model",
        )


def require_one_step_of_torch(step: StepSettings, *, backend: str) -> None:
    """Reject several steps in one call, which torch does not have.

    Raises:
        ComponentError: there are.
    """
    if backend == "torch" and (step.steps_per_execution or 1) > 1:
        raise ComponentError(
            f"train.steps_per_execution ({step.steps_per_execution}) must be 1 with train.backend torch",
            hint="leave it out",
        )


def require_one_shape(*, backend: str, kind: str) -> None:
    """Reject batches of several lengths, which TensorFlow's step on a TPU does not take.

    Raises:
        ComponentError: the step would be TensorFlow's, on a TPU.
    """
    if kind == "tpu" and backend == "tensorflow":
        raise ComponentError(ONE_SHAPE_ON_TPU, hint="set train.backend to jax, or leave the key out")


def require_agreeing_hosts(
    hosts: int, *, blow_up: BlowUpSettings, has_best_nowhere: bool = False, has_best_of_trials: bool = False
) -> None:
    """Reject what each host would do at another step, or from files that only one of them has.

    Raises:
        ComponentError: the first of `disagreements`.
    """
    for error in disagreements(
        hosts, blow_up=blow_up, has_best_nowhere=has_best_nowhere, has_best_of_trials=has_best_of_trials
    ):
        raise error


def disagreements(
    hosts: int, *, blow_up: BlowUpSettings, has_best_nowhere: bool, has_best_of_trials: bool
) -> Iterator[ComponentError]:
    """Yield an error for each thing that the hosts of a training would not do alike.

    These are going back to a checkpoint when the loss blows up, and taking the best epoch's weights from a
    folder that the hosts do not share.

    Args:
        hosts: the number of hosts.
        has_best_nowhere: whether the best epoch's weights are wanted, and kept in no folder.
        has_best_of_trials: whether they are wanted in a search, whose trials have no folder in common.
    """
    if hosts == 1:
        return
    if blow_up.trials:
        yield ComponentError(
            f"train.blow_up.trials ({blow_up.trials}) must be 0 on several hosts, but there are "
            f"{hosts}: each would notice a blown-up loss at another step",
            hint="set train.blow_up.trials to 0; a training that blows up then stops",
        )
    if has_best_of_trials:
        yield ComponentError(
            "train.early_stopping and train.checkpoint.serve_best take the best epoch's weights from a "
            f"folder, and the trials of tune keep no checkpoints that are common to the {hosts} hosts",
            hint="search on a slice of one host, such as v5e-8, then train with --set tune=null; or leave "
            "both settings out",
        )
    elif has_best_nowhere:
        yield ComponentError(
            f"the {hosts} hosts have no folder in common to take the best epoch's weights from, as "
            "train.early_stopping and train.checkpoint.serve_best want",
            hint="set train.checkpoint.folder to one that all hosts reach, such as gs://BUCKET/checkpoints; "
            "without it a cloud run keeps them below cloud.root",
        )
