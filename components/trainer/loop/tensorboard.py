"""Keras callbacks that record a training for TensorBoard: scalars, and a profile on request."""

import os
import socket
import time
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from slipway.components.event_lines import emit
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.loop.callback import FitStart, PeriodicSchedule, StepCallback, numbers_of
from slipway.components.trainer.resource_usage import Usage, usage

SCALAR_INTERVAL_STEPS = 100


def tensorboard(job: TrainingJob, start: FitStart) -> list[Any]:
    """Return the callbacks that the job asks for; none if it has no `log_dir`.

    Args:
        job: gives the folder, and what to record.
        start: where in the training the fit begins.
    """
    if job.log_dir is None:
        return []
    chosen: list[Any] = []
    if job.watch.tensorboard:
        chosen.append(Scalars(job.log_dir, start, batch_size=job.batch_size))
    if job.watch.profiled:
        chosen.append(Profile(job.log_dir, start, steps=job.watch.profiled))
    return chosen


class Scalars(StepCallback):
    """Writes loss, speed and use of the machine every 100 steps, and the metrics of each epoch.

    Args:
        folder: for TensorBoard.
        start: where in the training the fit begins.
        batch_size: examples per step.
    """

    def __init__(self, folder: str, start: FitStart, *, batch_size: int) -> None:
        super().__init__(start)
        self._writer = ScalarWriter(folder)
        self._batch_size = batch_size
        self._writing = PeriodicSchedule(steps=SCALAR_INTERVAL_STEPS, first_step=start.first_step)
        self._last: tuple[int, float, Usage] | None = None

    def after_step(self, loss: Any) -> None:
        """Write at the end of every hundredth step; the loss is that of the previous call."""
        if self._writing.is_due(self.step):
            self._write()
            self._measure_from(self.step)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Write the epoch's metrics; the time until the next step does not count as step time."""
        step = (epoch + 1) * self.start.steps_per_epoch
        self._writer.write(step, {f"epoch/{name}": value for name, value in numbers_of(logs).items()})
        self._measure_from(step)

    def _measure_from(self, step: int) -> None:
        self._writing.done(step)
        self._last = (step, time.monotonic(), usage())

    def _write(self) -> None:
        now, used = time.monotonic(), usage()
        values = {"memory/resident_bytes": float(used.memory_bytes)}
        if self.previous is not None:
            values["loss"] = float(self.previous[1])
        if used.device_memory_peak_bytes is not None:
            values["memory/device_peak_bytes"] = float(used.device_memory_peak_bytes)
        if self._last is not None:
            before_step, before, before_used = self._last
            steps, interval_s = self.step - before_step, max(now - before, 1e-9)
            values["speed/step_ms"] = 1e3 * interval_s / steps
            values["speed/examples_per_s"] = steps * self._batch_size / interval_s
            values["machine/cpu_cores"] = (used.cpu_s - before_used.cpu_s) / interval_s
            values["machine/read_bytes_per_s"] = (used.read_bytes - before_used.read_bytes) / interval_s
        self._writer.write(self.step, values)


class ScalarWriter:
    """Writes the files that TensorBoard reads, without its package: a TFRecord of `Event` messages.

    Source: TensorFlow's `tensorflow/core/util/event.proto`; files are recognised by "tfevents" in the name.

    Args:
        folder: created on demand; may be gs://...
    """

    def __init__(self, folder: str) -> None:
        tf.io.gfile.makedirs(folder)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
        self._file = tf.io.TFRecordWriter(f"{folder}/{name}")
        event = tf.compat.v1.Event(wall_time=time.time(), file_version="brain.Event:2")
        self._file.write(event.SerializeToString())

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write the values of a step, and flush them to disk."""
        summary = tf.compat.v1.Summary()
        for tag, value in values.items():
            summary.value.add(tag=tag, simple_value=value)
        event = tf.compat.v1.Event(wall_time=time.time(), step=step, summary=summary)
        self._file.write(event.SerializeToString())
        self._file.flush()


class Profile(StepCallback):
    """Profiles a range of steps, for TensorBoard's profile page.

    With several steps in one call, whole calls are profiled: those that begin in the range, or else the next
    one.

    Args:
        folder: the profile goes to `plugins/profile` below it.
        start: where in the training the fit begins.
        steps: the first and the last step, counted from 1.
    """

    def __init__(self, folder: str, start: FitStart, *, steps: tuple[int, int]) -> None:
        super().__init__(start)
        self._folder = folder
        self._first, self._last = steps
        self._began: int | None = None
        self._is_done = False

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Start before the first step."""
        if self._began is None and not self._is_done and self.step + 1 >= self._first:
            self._began = self.step + 1
            _profiler().start(self._folder)

    def after_step(self, loss: Any) -> None:
        """Stop after the last step."""
        if self._began is not None and self.step >= self._last:
            self._end(self.step)

    def on_train_end(self, logs: Any = None) -> None:
        """Stop with the training."""
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
