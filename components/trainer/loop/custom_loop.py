"""Custom training loops: a function `fit(model, data, context)` beside `build_model` takes the steps itself.

    def fit(model, data, context):
        for features, label in data:
            loss = my_step(model, features, label)
            context.step_done(loss)

Everything around a step is done as in Keras' own fit, by the same callbacks: `step_done` saves a checkpoint
if one is due, leaves if the process received SIGTERM, reports the progress, and evaluates the model at the
end of an epoch.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf

from slipway.components.errors import ComponentError
from slipway.components.event_lines import emit
from slipway.components.trainer.device_rules import require_custom_loop_gets
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.loop.callback import numbers_of
from slipway.components.trainer.loop.context import TrainingContext
from slipway.components.trainer.loop.model_state import snapshot

NO_STEP = "context.step_done(loss) after each batch of data"


def require_custom_loop(job: TrainingJob, devices: Devices) -> None:
    """Reject settings that a custom training loop cannot follow.

    Raises:
        ComponentError: several TensorFlow devices divide each batch, which only Keras' own fit does, or the
            job sets several steps per execution.
    """
    divided_by = devices.words if devices.strategy is not None else ""
    require_custom_loop_gets(job.model, job.step, divided_by=divided_by)


@dataclass(frozen=True, kw_only=True)
class LoopContext(TrainingContext):
    """The context of a custom training loop, which reports its steps to it."""

    _loop: "OwnLoop"

    @property
    def step(self) -> int:
        """The number of complete steps, including those of earlier attempts."""
        return self._loop.step

    def step_done(self, loss: Any) -> None:
        """End the step of the batch that was taken last.

        Args:
            loss: the loss of the step, one number; a tensor need not be computed yet.

        Raises:
            ComponentError: no batch was taken since the last call, the loss is not a number or has blown up,
                or a checkpoint cannot be written.
            PreemptedError: the process received SIGTERM, and everything is saved; no `except Exception`
                catches it.
        """
        self._loop.step_done(loss)

    def tell(self, words: str) -> None:
        """Show a line of progress to the user."""
        emit("fit", message=str(words))


@dataclass
class OwnLoop:
    """Drives the callbacks while the user's function takes the steps.

    Attributes:
        model: built and compiled.
        batches: endless, starting after the complete steps.
        eval_batches: for the metrics after each epoch; None: no such metrics.
        epochs: of the whole training.
        steps_per_epoch: >= 1.
        first_step: complete steps when the attempt began.
        where: the user's function, for messages.
        step: complete steps.
    """

    model: Any
    batches: Iterable[Any]
    eval_batches: Any | None
    epochs: int
    steps_per_epoch: int
    first_step: int
    callbacks: Sequence[keras.callbacks.Callback]
    where: str
    step: int = field(init=False)

    def __post_init__(self) -> None:
        self.step = self.first_step
        self._epoch_began = self.first_step
        self._taken = False
        self._sum: Any = 0.0
        self._summed = 0
        self._begun = ""
        self._error: BaseException | None = None
        self._listeners = keras.callbacks.CallbackList(
            self.callbacks, model=self.model, epochs=self.epochs, steps=self.steps_per_epoch
        )

    def run(self, fit: Callable[..., object] | None, facts: dict[str, Any]) -> None:
        """Have the user's function take the remaining steps, and end the training.

        Args:
            fit: called with the model, the batches and a `LoopContext`; None: no step is left.
            facts: see `context.facts_of`.

        Raises:
            ComponentError: the function returns something, takes no step, or returns within an epoch; or
                `step_done` has raised an error, even if the function went on.
            Exception: whatever the user's code raises.
        """
        self.model.stop_training = False
        self._listeners.on_train_begin()
        if fit is not None:
            self._take_steps(fit, LoopContext(**facts, _loop=self))
        self.model.optimizer.finalize_variable_values(self.model.trainable_weights)  # as Keras' own fit ends
        self._listeners.on_train_end()

    def _take_steps(self, fit: Callable[..., object], context: LoopContext) -> None:
        returned = fit(self.model, self._data(), context)
        self._require_no_error()
        if returned is not None:
            raise ComponentError(
                f"{self.where} returned {type(returned).__name__}; it changes the model in place",
                hint="return nothing",
            )
        if self.step == 0:
            raise ComponentError(
                f"{self.where} returned without a step",
                hint=f"call {NO_STEP}; a model that is fitted at once has fit(model, rows, hyperparameters)",
            )
        if self._taken or self.step % self.steps_per_epoch:
            raise ComponentError(
                f"{self.where} returned after step {self.step}, within an epoch of {self.steps_per_epoch}",
                hint="continue to the end of an epoch, which is then evaluated and kept (train.epochs)",
            )

    def step_done(self, loss: Any) -> None:
        """See `LoopContext.step_done`."""
        self._require_no_error()
        try:
            self._end_step(loss)
        except BaseException as error:
            self._error = error  # the user's `except Exception` must not hide it
            raise

    def _require_no_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _end_step(self, loss: Any) -> None:
        if not self._taken:
            raise ComponentError(
                f"{self.where} called context.step_done twice for step {self.step}, or before a batch",
                hint=f"call {NO_STEP}, once",
            )
        value = self._number(loss)
        self._sum, self._summed = self._sum + value, self._summed + 1
        self._taken = False
        self.step += 1
        self._listeners.on_train_batch_end(self.step - self._epoch_began - 1, {"loss": value})
        if self.step % self.steps_per_epoch == 0:
            self._end_epoch()

    def _data(self) -> Iterator[Any]:
        total = self.epochs * self.steps_per_epoch
        for batch in self.batches:
            self._require_no_error()
            is_epoch_begin = self.step % self.steps_per_epoch == 0
            if self.step >= total or (is_epoch_begin and self.model.stop_training):
                return
            if self._taken:
                raise ComponentError(
                    f"{self.where} took another batch before it ended step {self.step + 1}",
                    hint=f"call {NO_STEP}",
                )
            if self.step == self.first_step:
                # Creates the model's, the optimizer's and the metrics' variables, which a checkpoint holds.
                self.model._symbolic_build(data_batch=batch)
                self._begun = _digest(self.model)
            if is_epoch_begin or self.step == self.first_step:
                self._epoch_began = self.step
                self.model.reset_metrics()
                self._listeners.on_epoch_begin(self.step // self.steps_per_epoch)
            self._taken = True
            self._listeners.on_train_batch_begin(self.step - self._epoch_began)
            yield batch if keras.backend.backend() == "tensorflow" else tf.nest.map_structure(_array, batch)

    def _number(self, loss: Any) -> Any:
        """Return the loss as one number, which may not be computed yet."""
        try:
            value = keras.ops.cast(keras.ops.convert_to_tensor(loss), "float32")
            if len(value.shape) == 0:
                return value
            told = f"an array of shape {tuple(value.shape)}"
        except Exception:  # Keras, NumPy and the backends each raise their own
            told = type(loss).__name__
        raise ComponentError(
            f"{self.where} gave context.step_done {told}; the loss of a step is one number",
            hint='for example keras.ops.mean(losses), or model.train_on_batch(..., return_dict=True)["loss"]',
        )

    def _require_learned(self) -> None:
        """Reject a loop whose steps change arrays of its own: the model that is saved has learned nothing.

        A few steps may only sum up gradients, or have a rate of 0.
        """
        steps = self.step - self.first_step
        if not self._begun or steps < min(10, self.epochs * self.steps_per_epoch - self.first_step):
            return
        if self._begun == _digest(self.model):
            raise ComponentError(
                f"{self.where} took {steps} steps, and changed no variable of the model or of its "
                "optimizer: what is evaluated, saved in checkpoints and exported has learned nothing",
                hint="a loop that keeps the state in arrays, as of model.stateless_call, assigns them to the "
                "variables (variable.assign) before each context.step_done",
            )
        self._begun = ""

    def _end_epoch(self) -> None:
        self._require_learned()
        logs = {"loss": float(self._sum) / self._summed}
        self._sum, self._summed = 0.0, 0
        if self.eval_batches is not None:
            if keras.backend.backend() == "jax":  # which frees these arrays, and the loop may go on with them
                for each in self.model.variables:
                    each.assign(keras.ops.copy(each.value))
            found = self.model.evaluate(self.eval_batches, verbose=0, return_dict=True)
            logs |= numbers_of({f"val_{name}": value for name, value in found.items()})
        self._listeners.on_epoch_end(self.step // self.steps_per_epoch - 1, logs)


def _digest(model: Any) -> str:
    hashed = hashlib.sha256()
    for each in snapshot(model):
        hashed.update(each.tobytes())
    return hashed.hexdigest()


def _array(values: Any) -> Any:
    return values.numpy() if isinstance(values, tf.Tensor) else values
