"""The training process: `python -m slipway.components.trainer.train job.json`.

It needs keras, tensorflow (tf.data), numpy and the user's model, but not TFX. It writes the weights, the
history (metrics of each epoch) and the result into the job's folder, and prints its progress as one JSON
object per line:

    {"event": "devices", "kind": ..., "words": ..., "replicas": ...}
    {"event": "note", "message": ...}                             a message for the user
    {"event": "start", "devices": ..., "train_rows": ..., "eval_rows": ..., "steps": ..., "parameters": ...}
    {"event": "damaged", "message": ...}                          a checkpoint that cannot be resumed from
    {"event": "resumed", "epoch": ..., "step": ...}               resumes after this epoch and step
    {"event": "rolled_back", "step": ..., "trial": ..., ...}      blew up, and resumes after this step
    {"event": "step", "step": ..., "steps": ..., "loss": ...}     at most two per second
    {"event": "epoch", "epoch": ..., "epochs": ..., "metrics": {...}}
    {"event": "fit", "message": ...}                              a message of the user's own `fit`
    {"event": "profiled", "first": ..., "last": ..., "folder": ...}
    {"event": "done", ...}  or  {"event": "failed", "message": ..., "hint": ...}
    or  {"event": "preempted", "step": ...}                       saved after this step, and ended

Exit codes: 0 trained; 1 failed, and the last line says why; 138 ended by SIGTERM, to be restarted.

With a checkpoint_dir it saves checkpoints there, at the end of each epoch and in between as the job says, and
resumes from the newest one, with the batches, optimizer state and seeds that an uninterrupted training would
continue with. On the JAX backend, and with TensorFlow under `tf.config.experimental.enable_op_determinism()`,
the weights are then the same to the last bit. Without it they are as alike as those of two uninterrupted
trainings, which may differ by the order of sums in threads. Random numbers that do not come from a layer's
seed generator (`tf.random.uniform`, `keras.random.normal` without a seed) are not restored: they start again
from the job's seed.
"""

import argparse
import contextlib
import ctypes
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.components.atomic_file import whole_file
from slipway.components.errors import SlipwayError
from slipway.components.event_lines import emit
from slipway.components.finite_json import finite
from slipway.components.kept_state import PREEMPTED_EXIT_CODE
from slipway.components.large_imports import large_imports
from slipway.components.saved_model.digest import SBOM
from slipway.components.trainer.custom_fit import fit_at_once, has_custom_fit, require_no_buckets
from slipway.components.trainer.custom_functions import has_custom_loop
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.devices.opening import open_devices
from slipway.components.trainer.devices.with_jax import is_one_of_several_hosts, leave
from slipway.components.trainer.features import refused_value
from slipway.components.trainer.global_batch import (
    padding_advice,
    require_divisible,
    require_evaluation,
    require_one_batch,
)
from slipway.components.trainer.job import HISTORY_FILE, RESULT_FILE, WEIGHTS_FILE, TrainingJob
from slipway.components.trainer.loop.host_agreement import require_agreement
from slipway.components.trainer.loop.preemption import PreemptedError, Preemption
from slipway.components.trainer.pretrained import local_file
from slipway.components.trainer.result import Facts, Result, summarise
from slipway.components.trainer.same_answers import Answers, sample_answers
from slipway.components.trainer.sbom import bill_of_materials
from slipway.components.trainer.steps_per_execution import whole_executions
from slipway.components.trainer.trace_error import explain
from slipway.components.trainer.user_model import build_model, describe, require_outputs

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_FULL_DISK = ("No space left on device", "Disk quota exceeded")


def main(arguments: list[str] | None = None, *, tell: Callable[..., None] = emit) -> int:
    """Run the job of the command line; return the exit code.

    Args:
        arguments: of the command line; None: those of this process.
        tell: receives the last event: done, failed or preempted.
    """
    parser = argparse.ArgumentParser(prog="python -m slipway.components.trainer.train", description=__doc__)
    parser.add_argument("job", type=Path, help="the job file, as slipway.components.trainer.job writes it")
    parser.add_argument("--parent-pid", type=int, help="end when this process, the parent, ends")
    options = parser.parse_args(arguments)
    if options.parent_pid is not None:
        _end_with_parent(options.parent_pid)
    job = None
    preemption = Preemption()
    try:
        preemption.listen()
        job = TrainingJob.load(options.job)
        tell("done", **train(job, preemption))
    except PreemptedError as error:
        with contextlib.suppress(BrokenPipeError):  # the reader may be gone already
            tell("preempted", step=error.step)
        return PREEMPTED_EXIT_CODE
    except SlipwayError as error:
        tell("failed", message=error.message, hint=error.hint)
        return 1
    except Exception as error:  # the user's code may raise anything; the traceback goes to the log
        traceback.print_exc()
        message, hint = _in_words(error, job)
        tell("failed", message=message, hint=hint)
        return 1
    return 0


def _in_words(error: Exception, job: TrainingJob | None) -> tuple[str, str]:
    """Return what to tell of an error of the user's code, or of a row that is streamed, and a hint."""
    if refused := refused_value(str(error)):
        return refused.message, refused.hint
    full = next((each for each in _FULL_DISK if each in str(error)), "")
    if full:  # HDF5 names the file in its second line, and others none
        place = getattr(error, "filename", None)
        words = f"{full}: {place}" if place else describe(error, job.model) if job else str(error)
        return words, "make room on that disk; TMPDIR names another one for temporary files"
    # A collective sum fails if another host has ended; the reason is in that host's log.
    hint = "if another host failed first, its log says why" if is_one_of_several_hosts() else ""
    if str(error).startswith("No loss to compute"):  # as of a model whose own train_step computes one
        hint = (
            "the evaluation after each epoch needs one, too: write test_step beside train_step, or compile "
        )
        hint += "with a loss"
    if job is None or job.compute.backend != "jax":
        return describe(error, job.model) if job else str(error), hint
    told = explain(error, job.model)
    return told.message, hint or told.remedy


def train(job: TrainingJob, preemption: Preemption) -> Result:
    """Train the job's model and write weights, history, result and bill of materials into its folder.

    Returns:
        The result: train_rows, eval_rows, steps, epochs, parameters, and what `result.summarise` adds. A
        resumed training is reported as one.

    Raises:
        PreemptedError: the process received SIGTERM, and has saved what it could.
        ComponentError: the data or the model cannot be trained on, or the loss is no longer a number.
        Exception: whatever the user's model code raises.
    """
    if has_custom_fit(job.model):
        require_no_buckets(job)
        model, fitted, history = fit_at_once(job)
        _save_weights(job, model)
        fitted["answers"] = sample_answers(model, job.inputs, batch_size=job.batch_size)
        _save_texts(job, fitted, history)
        return fitted
    began_at = time.time()
    with large_imports(keep=True):
        devices = open_devices(job.compute, os.environ)
    require_agreement(job, devices.hosts)
    emit("devices", kind=devices.kind, words=devices.words, replicas=devices.replicas)
    for words in devices.passed_over:
        emit("note", message=words)
    # Imported here so that a wrong job file is reported in milliseconds, not after TensorFlow's start.
    import keras

    from slipway.components.trainer.any_length import require_any_length, require_bucketing_devices
    from slipway.components.trainer.compile_options import dtype_policy
    from slipway.components.trainer.input.examples import CachedExamples, input_advice, open_splits
    from slipway.components.trainer.input.targets import with_known_labels
    from slipway.components.trainer.input.weights import weighed
    from slipway.components.trainer.loop.custom_loop import require_custom_loop
    from slipway.components.trainer.loop.fit import Input, fit
    from slipway.components.trainer.loop.step_time import constant_batch_step_s, input_wait
    from slipway.components.trainer.loop.train_function import takes_blocks
    from slipway.components.trainer.loss_labels import (
        classes_of_codes,
        hinged_outputs,
        require_equal_shapes,
        require_labels,
        words_of_flat_answers,
        words_of_logits,
        words_of_masks,
    )
    from slipway.components.trainer.unsaved_state import UnsavedState

    if job.compute.backend == "jax":
        keras.config.disable_traceback_filtering()  # it fails at JAX's errors, and hides the layer
    is_custom_loop = has_custom_loop(job.model)
    if is_custom_loop:
        require_custom_loop(job, devices)
    if job.buckets.lengths:
        require_bucketing_devices(devices)
    require_divisible(job.batch_size, replicas=devices.replicas, hosts=devices.hosts.count)
    keras.utils.set_random_seed(job.seed)
    keras.config.set_dtype_policy(dtype_policy(job.step, devices))
    weights = weighed(job)
    job = weights.job
    for words in filter(None, (weights.class_words, weights.mean_words)):
        emit("note", message=words)
    examples, eval_examples = open_splits(job, devices)
    require_one_batch(job.batch_size, examples=examples.count, full_batches=examples.full_batches)
    if eval_examples:
        require_evaluation(eval_examples.count, needed=eval_examples.needed)
    most_steps = 1 if is_custom_loop else job.checkpoint.steps
    if isinstance(examples, CachedExamples) and job.buckets.lengths:
        require_any_length(job, examples.shortest)
    model, steps_per_epoch = _model(job, devices, full_batches=examples.full_batches, most_steps=most_steps)
    if words := words_of_flat_answers(model, job.label, job.label_shapes, is_custom_loop=is_custom_loop):
        emit("note", message=words)
    if not is_custom_loop:  # which need not use the loss
        require_equal_shapes(model, job.label, job.label_shapes, job.model)
        require_labels(model, job.label, {"train": examples, "eval": eval_examples}, job.model)
        for words in (*words_of_logits(model, job.label), *words_of_masks(model, job.label)):
            emit("note", message=words)
    facts: Facts = {
        "devices": devices.words,
        "input": examples.words,
        "train_rows": examples.count,
        "eval_rows": eval_examples.count if eval_examples else 0,
        "steps": steps_per_epoch * job.epochs,
        "epochs": job.epochs,
        "parameters": model.count_params(),
    }
    emit("start", **facts)
    is_in_blocks = takes_blocks(model, devices) and not is_custom_loop and not job.buckets.lengths
    classes, hinged = classes_of_codes(model, job.label), hinged_outputs(model, job.label)

    def known(batches: Any) -> Any:
        return with_known_labels(batches, classes, hinged) if job.weight else batches

    data = Input(
        steps_per_epoch=steps_per_epoch,
        in_blocks=is_in_blocks,
        wait=input_wait(devices) if is_in_blocks else None,
        batches_from=lambda step, rollbacks: devices.prefetch_to_device(
            known(
                examples.training(
                    steps_per_epoch=steps_per_epoch,
                    first_step=step,
                    seed=job.seed + rollbacks,
                    in_one_call=model.steps_per_execution if is_in_blocks else None,
                )
            )
        ),
        eval_batches=known(eval_examples.evaluation()) if eval_examples else None,
        is_custom_loop=is_custom_loop,
        order=examples.order,
    )
    writes = devices.hosts.index == 0  # every host has the same weights
    unsaved = UnsavedState(model)
    reached, attempts = fit(model, job, data, preemption, began_at=began_at, devices=devices)
    unsaved.require_unchanged(job.trained_inputs)
    if writes:
        with _alone(job, model) if devices.hosts.count > 1 else contextlib.nullcontext(model) as saved:
            _save_weights(job, saved)
    answers: Answers = []
    if (
        devices.kind != "tpu" and devices.hosts.count == 1
    ):  # a TPU compiles each operation of a call by itself
        answers = sample_answers(model, job.inputs, batch_size=job.batch_size)
    constant_s = None
    if data.wait is None and not is_custom_loop and not job.buckets.lengths:
        constant_s = constant_batch_step_s(model, data.batches_from(0, 0), reached.clock, devices)
    summary = summarise(
        job,
        reached,
        attempts,
        is_wait_counted=data.wait is not None,
        constant_batch_step_s=constant_s,
        input_advice=input_advice(job, rows=examples.count),
    )
    result: Result = {**facts, "steps": reached.step, **summary, "answers": answers}
    if writes:
        _save_texts(job, result, reached.history)
    return result


def _require_tpu_model(job: TrainingJob, devices: Devices) -> None:
    """Build the model once more, off the TPU, and reject what no TPU can compute."""
    import keras

    from slipway.components.trainer.devices.tpu_model import require_tpu_model

    with keras.device("cpu:0"):
        for bucket in range(job.buckets.count):
            inputs = job.buckets.features(job.inputs, bucket)
            model = build_model(job.model, inputs, job.hyperparameters)
            require_tpu_model(model, batch_size=job.batch_size // devices.replicas)
    keras.utils.set_random_seed(job.seed)  # as if nothing had been built


def _model(
    job: TrainingJob, devices: Devices, *, full_batches: int, most_steps: int | None
) -> tuple[Any, int]:
    """Return the user's model, built in the devices' scope with all settings, and the steps per epoch.

    Args:
        full_batches: full batches in an epoch.
        most_steps: the limit of steps per execution, see `set_step`.
    """
    from slipway.components.trainer.compile_options import dtype_policy, set_step, unsynchronized
    from slipway.components.trainer.learning_rate import scale_learning_rate

    if devices.kind == "tpu":
        _require_tpu_model(job, devices)
    pretrained = local_file(job.pretrained, folder=Path(job.output_dir))
    with devices.scope():
        model = build_model(job.model, job.trained_inputs, job.hyperparameters, pretrained=pretrained)
        require_outputs(model, job.label, job.model)
        spread = devices.check_layout(model)
        batch_size = job.batch_size * job.step.accumulate_steps
        factor = scale_learning_rate(
            model, job.learning_rate, batch_size=batch_size, accumulate_steps=job.step.accumulate_steps
        )
        set_step(
            model,
            job.step,
            devices,
            batch_size=job.batch_size,
            steps_per_epoch=full_batches,
            limit=most_steps,
            longest=job.buckets.longest,
        )
    if spread:
        emit("note", message=spread)
    if devices.strategy is not None and (layers := unsynchronized(model)):
        emit(
            "note",
            message=f"{', '.join(each.name for each in layers)} normalise each replica's examples by "
            "themselves; synchronized=True helps",
        )
    if "bfloat16" in dtype_policy(job.step, devices) and not devices.has_bfloat16:
        emit("note", message="this device computes bfloat16 more slowly than float32")
    if factor != 1.0:
        emit("note", message=f"learning rate times {factor:.4g} for {batch_size} examples an update")
    if devices.kind == "tpu" and (advice := padding_advice(job.batch_size, replicas=devices.replicas)):
        emit("note", message=advice)
    return model, whole_executions(full_batches, model.steps_per_execution)


@contextlib.contextmanager
def _alone(job: TrainingJob, model: Any) -> Iterator[Any]:
    """Yield a copy of the model on this host alone: Keras does not save arrays that are spread over several.

    Keras also creates a variable while it saves, and all hosts must create a distributed variable together.
    """
    import keras

    from slipway.components.trainer.loop.model_state import take_over

    distribution = keras.distribution.distribution()
    keras.distribution.set_distribution(None)
    try:
        with keras.device("cpu:0"):
            copy = build_model(job.model, job.trained_inputs, job.hyperparameters)
            take_over(copy, model)
            yield copy
    finally:
        keras.distribution.set_distribution(distribution)


def _save_weights(job: TrainingJob, model: Any) -> None:
    with whole_file(Path(job.output_dir, WEIGHTS_FILE)) as partial:
        model.save_weights(partial)


def _save_texts(job: TrainingJob, result: Result, history: Sequence[Mapping[str, float]]) -> None:
    texts = ((HISTORY_FILE, {"epochs": history}), (RESULT_FILE, result), (SBOM, bill_of_materials()))
    for name, values in texts:
        with whole_file(Path(job.output_dir, name)) as partial:
            partial.write_text(json.dumps(finite(values), indent=2) + "\n", encoding="utf-8")


def _end_with_parent(parent_pid: int) -> None:
    """Have the kernel send SIGTERM when the parent dies, however it dies; exit if it is already dead."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent_pid:
        sys.exit("the process that started this training is gone")


if __name__ == "__main__":
    leave(main())
