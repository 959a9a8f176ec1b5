"""The training process: `python -m components.trainer.train job.json`.

It needs keras, tensorflow (tf.data), numpy and the user's model, and nothing of TFX. It writes into the
job's folder the weights, the history (metrics of each epoch) and the result, and prints its progress as one
JSON object a line:

    {"event": "start", "train_rows": ..., "eval_rows": ..., "steps": ..., "parameters": ...}
    {"event": "step", "step": ..., "steps": ..., "loss": ...}     at most two a second
    {"event": "epoch", "epoch": ..., "epochs": ..., "metrics": {...}}
    {"event": "done", ...}  or  {"event": "failed", "message": ..., "hint": ...}

Exit codes: 0 trained; 1 not, and the last line says why.
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
from pathlib import Path
from typing import Any

from components.errors import ComponentError, SlipwayError
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
        those of the last epoch by their Keras name.

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
    batches = dataset.training_batches(train_rows, job)
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
    started = time.monotonic()
    history = model.fit(
        batches,
        epochs=job.epochs,
        steps_per_epoch=steps,
        validation_data=dataset.eval_batches(eval_rows, job) if eval_rows else None,
        shuffle=False,  # the batches come shuffled
        verbose=0,
        callbacks=[_progress(facts["steps"], job.epochs)],
    ).history
    fit_s = time.monotonic() - started
    result = {
        **facts,
        "fit_s": round(fit_s, 3),
        "examples_per_s": round(facts["steps"] * job.batch_size / fit_s),
        "metrics": {name: float(values[-1]) for name, values in history.items()},
    }
    _save(job, model, history, result)
    return result


def emit(event: str, **values: Any) -> None:
    """Prints one line of progress."""
    print(json.dumps({"event": event, **values}), flush=True)


def _progress(total_steps: int, epochs: int) -> Any:
    """A Keras callback that emits the step and epoch events and stops a training that has blown up."""
    import keras

    class Progress(keras.callbacks.Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.step = 0
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


def _save(job: TrainingJob, model: Any, history: dict[str, list[float]], result: dict[str, Any]) -> None:
    """Writes the three files, each under another name first, so that none is ever half there."""
    folder = Path(job.output_dir)
    unfinished = folder / f"unfinished.{WEIGHTS_FILE}"  # Keras insists on the suffix
    model.save_weights(unfinished)
    unfinished.replace(folder / WEIGHTS_FILE)
    epochs = [
        {"epoch": number + 1, **{name: float(values[number]) for name, values in history.items()}}
        for number in range(len(history["loss"]))
    ]
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
