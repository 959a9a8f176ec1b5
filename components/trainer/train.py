"""The training process: `python -m components.trainer.train job.json`.

It needs keras, tensorflow (tf.data), numpy and the user's model, and nothing of TFX. It writes into the
job's folder the weights, the history (metrics of each epoch) and the result, and prints its progress as one
JSON object a line:

    {"event": "start", "train_rows": ..., "eval_rows": ..., "steps": ..., "parameters": ...}
    {"event": "damaged", "message": ...}                          a checkpoint that cannot be gone on with
    {"event": "resumed", "epoch": ...}                            goes on after this epoch
    {"event": "step", "step": ..., "steps": ..., "loss": ...}     at most two a second
    {"event": "epoch", "epoch": ..., "epochs": ..., "metrics": {...}}
    {"event": "done", ...}  or  {"event": "failed", "message": ..., "hint": ...}

Exit codes: 0 trained; 1 not, and the last line says why.

With a checkpoint_dir it leaves a checkpoint there after every epoch, and goes on from the newest one: with
the batches, the optimizer and the seeds that an undisturbed training would go on with. Under
`tf.config.experimental.enable_op_determinism()` the weights are then the same to the last bit. Without it
they are as alike as those of two undisturbed trainings, which may differ by the order of sums in threads.
Random numbers that no seed generator of a layer makes (`tf.random.uniform`, `keras.random.normal` without
a seed) are not kept: they begin again from the job's seed.
"""

import argparse
import ctypes
import json
import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from components.errors import ComponentError, SlipwayError
from components.trainer.checkpoint import Checkpoint, CheckpointFolder
from components.trainer.job import HISTORY_FILE, RESULT_FILE, WEIGHTS_FILE, TrainingJob
from components.trainer.user_model import build_model, describe

STEP_EVENT_INTERVAL_S = 0.5
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(arguments: list[str] | None = None) -> int:
    """Carries out the job of the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m components.trainer.train", description=__doc__)
    parser.add_argument("job", type=Path, help="the job file, as components.trainer.job writes it")
    parser.add_argument("--parent-pid", type=int, help="end when this process, the parent, ends")
    options = parser.parse_args(arguments)
    if options.parent_pid is not None:
        _end_with_parent(options.parent_pid)
    job = None
    try:
        job = TrainingJob.load(options.job)
        emit("done", **train(job))
    except SlipwayError as error:
        emit("failed", message=error.message, hint=error.hint)
        return 1
    except Exception as error:  # the user's code may raise anything; the traceback goes to the log
        traceback.print_exc()
        emit("failed", message=describe(error, job.model) if job else str(error), hint="")
        return 1
    return 0


def train(job: TrainingJob) -> dict[str, Any]:
    """Trains the job's model and writes weights, history and result into its folder.

    Returns:
        The result: train_rows, eval_rows, steps, epochs, parameters, fit_s, examples_per_s, and metrics,
        those of the last epoch by their Keras name. A training that was gone on with is told as one.

    Raises:
        ComponentError: the data or the model cannot be trained on, or the loss is no longer a number.
        Exception: what the user's model code raises.
    """
    # Imported here so that a wrong job file is reported in milliseconds, not after TensorFlow's start.
    import keras

    from components.trainer import dataset

    keras.utils.set_random_seed(job.seed)
    train_rows = dataset.load_rows(job.train_files, job.features)
    eval_rows = dataset.load_rows(job.eval_files, job.features) if job.eval_files else None
    steps = dataset.steps_per_epoch(train_rows, job)
    model = build_model(job.model, job.inputs, job.hyperparameters)
    facts = {
        "train_rows": dataset.row_count(train_rows),
        "eval_rows": dataset.row_count(eval_rows) if eval_rows else 0,
        "steps": steps * job.epochs,
        "epochs": job.epochs,
        "parameters": model.count_params(),
    }
    emit("start", **facts)
    folder = CheckpointFolder(Path(job.checkpoint_dir), job=job.identity) if job.checkpoint_dir else None
    begin = _go_on(model, folder) if folder else Checkpoint()
    record = _record(begin, folder, steps_per_epoch=steps)
    model.fit(
        dataset.training_batches(train_rows, job, first_epoch=begin.epoch),
        epochs=job.epochs,
        initial_epoch=begin.epoch,
        steps_per_epoch=steps,
        validation_data=dataset.eval_batches(eval_rows, job) if eval_rows else None,
        shuffle=False,  # the batches come shuffled
        verbose=0,
        # In this order: no checkpoint of a training that has blown up.
        callbacks=[_progress(facts["steps"], job.epochs, step=begin.step), record],
    )
    fit_s = record.reached.fit_s
    result = {
        **facts,
        "fit_s": round(fit_s, 3),
        "examples_per_s": round(facts["steps"] * job.batch_size / fit_s),
        "metrics": {name: value for name, value in record.reached.history[-1].items() if name != "epoch"},
    }
    _save(job, model, record.reached.history, result)
    return result


def emit(event: str, **values: Any) -> None:
    """Prints one line of progress."""
    print(json.dumps({"event": event, **values}), flush=True)


def _go_on(model: Any, folder: CheckpointFolder) -> Checkpoint:
    """Brings the model to the newest intact checkpoint and says so; the beginning where there is none."""
    checkpoint, problems = folder.newest()
    for problem in problems:
        emit("damaged", message=problem)
    if checkpoint.epoch == 0:
        return checkpoint
    import keras

    model.optimizer.build(model.trainable_variables)
    variables = _variables(model)
    shapes = [tuple(variable.shape) for variable in variables]
    if shapes != [values.shape for values in checkpoint.variables]:
        raise ComponentError(
            f"the checkpoint in {folder.path} does not fit the model that build_model returns now",
            hint="remove that folder to train from the beginning",
        )
    for variable, values in zip(variables, checkpoint.variables, strict=True):
        # NumPy's files know no bfloat16, and give back plain bytes.
        dtype = keras.ops.convert_to_numpy(variable).dtype
        variable.assign(values.view(dtype) if values.dtype.kind == "V" else values)
    emit("resumed", epoch=checkpoint.epoch)
    return checkpoint


def _variables(model: Any) -> list[Any]:
    """All that training changes: weights, the seeds of Dropout and its like, the optimizer's state."""
    return [*model.variables, *model.optimizer.variables]


def _record(begin: Checkpoint, folder: CheckpointFolder | None, *, steps_per_epoch: int) -> Any:
    """A Keras callback that notes in `reached` how far the training is, and keeps that in the folder."""
    import keras

    class Record(keras.callbacks.Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.reached = replace(begin, variables=())
            self.resumed_at = time.monotonic()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            metrics = {name: float(value) for name, value in (logs or {}).items()}
            self.reached = Checkpoint(
                epoch=epoch + 1,
                step=(epoch + 1) * steps_per_epoch,
                fit_s=begin.fit_s + time.monotonic() - self.resumed_at,
                history=(*self.reached.history, {"epoch": epoch + 1, **metrics}),
            )
            if folder:
                values = [keras.ops.convert_to_numpy(variable) for variable in _variables(self.model)]
                folder.save(replace(self.reached, variables=values))

    return Record()


def _progress(total_steps: int, epochs: int, *, step: int) -> Any:
    """A Keras callback that emits the step and epoch events and stops a training that has blown up."""
    import keras

    class Progress(keras.callbacks.Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.step = step
            self.emitted_at = time.monotonic()
            self.previous_loss: Any = None

        def on_train_batch_end(self, _batch: int, logs: Any = None) -> None:
            self.step += 1
            now = time.monotonic()
            # The loss of the step before: reading that of the current one would make the device wait.
            if self.previous_loss is not None and now - self.emitted_at >= STEP_EVENT_INTERVAL_S:
                self.emitted_at = now
                emit("step", step=self.step - 1, steps=total_steps, loss=round(float(self.previous_loss), 6))
            self.previous_loss = (logs or {}).get("loss")

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            metrics = {name: float(value) for name, value in (logs or {}).items()}
            if not math.isfinite(metrics["loss"]):
                raise ComponentError(
                    f"the loss is {metrics['loss']} after epoch {epoch + 1}",
                    hint="lower the learning rate, or look for infinite or huge values in the features",
                )
            emit("epoch", epoch=epoch + 1, epochs=epochs, metrics=metrics)

    return Progress()


def _save(
    job: TrainingJob, model: Any, epochs: Sequence[Mapping[str, float]], result: Mapping[str, Any]
) -> None:
    """Writes the three files, each under another name first, so that none is ever half there."""
    folder = Path(job.output_dir)
    unfinished = folder / f"unfinished.{WEIGHTS_FILE}"  # Keras insists on the suffix
    model.save_weights(unfinished)
    unfinished.replace(folder / WEIGHTS_FILE)
    for name, values in ((HISTORY_FILE, {"epochs": epochs}), (RESULT_FILE, result)):
        text = folder / f"unfinished.{name}"
        text.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        text.replace(folder / name)


def _end_with_parent(parent_pid: int) -> None:
    """Has the kernel send SIGTERM when the parent dies, however it dies; leaves if it is dead already."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent_pid:
        sys.exit("the process that started this training is gone")


if __name__ == "__main__":
    sys.exit(main())
