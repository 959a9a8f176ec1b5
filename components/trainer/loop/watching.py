"""Keras callbacks that record a training for people: scalars for TensorBoard, and a profile on request."""

import os
import socket
import time
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from components.trainer.events import emit
from components.trainer.job import TrainingJob
from components.trainer.usage import Usage, usage

SCALAR_INTERVAL_STEPS = 100


def watching(job: TrainingJob, *, steps_per_epoch: int, first_step: int) -> list[Any]:
    """The callbacks that the job asks for; none where it has no `log_dir`.

    Args:
        job: gives the folder, and what is recorded.
        steps_per_epoch: steps in each epoch.
        first_step: how many steps are complete at the beginning.
    """
    if job.log_dir is None:
        return []
    place: dict[str, Any] = {"steps_per_epoch": steps_per_epoch, "first_step": first_step}
    chosen: list[Any] = []
    if job.watch.tensorboard:
        chosen.append(Scalars(job.log_dir, batch_size=job.batch_size, **place))
    if job.watch.profiled:
        chosen.append(Profile(job.log_dir, job.watch.profiled, **place))
    return chosen


class _Placed(keras.callbacks.Callback):  # type: ignore[misc]
    """A callback that knows the number of a step in the whole training."""

    def __init__(self, *, steps_per_epoch: int, first_step: int) -> None:
        super().__init__()
        self._steps_per_epoch = steps_per_epoch
        self._first_step = first_step
        self._done_before = first_step

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Notes where the epoch's steps begin to count."""
        self._done_before = max(epoch * self._steps_per_epoch, self._first_step)


class Scalars(_Placed):
    """Writes loss, speed and use of the machine every 100 steps, and the metrics of each epoch.

    Args:
        folder: for TensorBoard.
        batch_size: examples a step.
    """

    def __init__(self, folder: str, *, batch_size: int, **place: Any) -> None:
        super().__init__(**place)
        self._writer = ScalarWriter(folder)
        self._batch_size = batch_size
        self._last: tuple[int, float, Usage] | None = None
        self._previous_loss: Any = None

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Writes at the end of every hundredth step; the loss is that of the call before."""
        step = self._done_before + batch + 1
        last_step = self._last[0] if self._last else self._first_step
        if step // SCALAR_INTERVAL_STEPS > last_step // SCALAR_INTERVAL_STEPS:
            self._write(step)
        self._previous_loss = (logs or {}).get("loss")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Writes the epoch's metrics; the time until the next step is not counted as a step's."""
        values = {f"epoch/{name}": float(value) for name, value in (logs or {}).items()}
        self._writer.write((epoch + 1) * self._steps_per_epoch, values)
        self._last = ((epoch + 1) * self._steps_per_epoch, time.monotonic(), usage())

    def _write(self, step: int) -> None:
        now, used = time.monotonic(), usage()
        values = {"memory/resident_bytes": float(used.memory_bytes)}
        if self._previous_loss is not None:
            values["loss"] = float(self._previous_loss)
        if used.device_memory_peak_bytes is not None:
            values["memory/device_peak_bytes"] = float(used.device_memory_peak_bytes)
        if self._last is not None:
            before_step, before, before_used = self._last
            interval_s = max(now - before, 1e-9)
            values["speed/step_ms"] = 1e3 * interval_s / (step - before_step)
            values["speed/examples_per_s"] = (step - before_step) * self._batch_size / interval_s
            values["machine/cpu_cores"] = (used.cpu_s - before_used.cpu_s) / interval_s
            values["machine/read_bytes_per_s"] = (used.read_bytes - before_used.read_bytes) / interval_s
        self._writer.write(step, values)
        self._last = (step, now, used)


class ScalarWriter:
    """Writes the files that TensorBoard reads, without its package: a TFRecord of `Event` messages.

    Source: TensorFlow's `tensorflow/core/util/event.proto`; files are recognised by "tfevents" in the name.

    Args:
        folder: made on demand; may be gs://...
    """

    def __init__(self, folder: str) -> None:
        tf.io.gfile.makedirs(folder)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
        self._file = tf.io.TFRecordWriter(f"{folder}/{name}")
        event = tf.compat.v1.Event(wall_time=time.time(), file_version="brain.Event:2")
        self._file.write(event.SerializeToString())

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Writes the values of a step, and has them on disk."""
        summary = tf.compat.v1.Summary()
        for tag, value in values.items():
            summary.value.add(tag=tag, simple_value=value)
        event = tf.compat.v1.Event(wall_time=time.time(), step=step, summary=summary)
        self._file.write(event.SerializeToString())
        self._file.flush()


class Profile(_Placed):
    """Profiles a range of steps, for TensorBoard's profile page.

    Where several steps are one call, whole calls are profiled: those that begin in it, or the next.

    Args:
        folder: the profile goes to `plugins/profile` below it.
        steps: the first and the last step, counted from 1.
    """

    def __init__(self, folder: str, steps: tuple[int, int], **place: Any) -> None:
        super().__init__(**place)
        self._folder = folder
        self._first, self._last = steps
        self._began: int | None = None
        self._is_done = False

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Begins before the first step."""
        step = self._done_before + batch + 1
        if self._began is None and not self._is_done and step >= self._first:
            self._began = step
            _profiler().start(self._folder)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Ends after the last step."""
        if self._began is not None and self._done_before + batch + 1 >= self._last:
            self._end(self._done_before + batch + 1)

    def on_train_end(self, logs: Any = None) -> None:
        """Ends with the training."""
        if self._began is not None:
            self._end(self._last)

    def _end(self, step: int) -> None:
        _profiler().stop()
        emit("profiled", first=self._began, last=step, folder=self._folder)
        self._began, self._is_done = None, True


class _JaxProfiler:
    @staticmethod
    def start(folder: str) -> None:
        import jax

        jax.profiler.start_trace(folder)

    @staticmethod
    def stop() -> None:
        import jax

        jax.profiler.stop_trace()


def _profiler() -> Any:
    return _JaxProfiler if keras.backend.backend() == "jax" else tf.profiler.experimental
