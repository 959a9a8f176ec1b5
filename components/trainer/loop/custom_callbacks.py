"""Custom Keras callbacks: a function `callbacks(context)` beside `build_model` returns them."""

from collections.abc import Sequence
from typing import Any

import keras

from slipway.components.errors import ComponentError
from slipway.components.trainer.custom_functions import CALLBACKS, custom_function, has_custom_callbacks
from slipway.components.trainer.learning_rate import WarmUp, scheduled_rate
from slipway.components.trainer.loop.context import TrainingContext

_OF_STEPS = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")


def custom_callbacks(dotted_path: str, context: TrainingContext) -> list[keras.callbacks.Callback]:
    """Return the callbacks for one attempt at a training, which are called before each checkpoint is saved.

    Args:
        dotted_path: of `build_model`.
        context: passed to the function.

    Returns:
        The callbacks; [] if the module has no such function.

    Raises:
        ComponentError: the function returns something else, or a callback that puts other weights into the
            model than the training goes on with.
        Exception: whatever the user's code raises.
    """
    if not has_custom_callbacks(dotted_path):
        return []
    where = f"{dotted_path.rpartition('.')[0]}.{CALLBACKS}"
    found = custom_function(dotted_path, CALLBACKS)(context)
    if not isinstance(found, list | tuple):
        raise ComponentError(
            f"{where} must return a list of Keras callbacks, not {type(found).__name__}",
            hint="return [] for none",
        )
    for each in found:
        if not isinstance(each, keras.callbacks.Callback):
            kind = each.__name__ if isinstance(each, type) else type(each).__name__
            raise ComponentError(
                f"{where} returns {kind}, which is not a Keras callback",
                hint="return instances of keras.callbacks.Callback, for example "
                "keras.callbacks.ReduceLROnPlateau()",
            )
        if isinstance(each, keras.callbacks.BackupAndRestore):
            raise ComponentError(
                f"{where} returns BackupAndRestore, which begins from its own backup, whichever training "
                "left it, in place of this one's checkpoint",
                hint="leave it out: a training that was interrupted goes on by itself (train.checkpoint)",
            )
        if isinstance(each, keras.callbacks.SwapEMAWeights) and each.swap_on_epoch:
            raise ComponentError(
                f"{where} returns SwapEMAWeights(swap_on_epoch=True), which leaves the averages in the model "
                "at the end of an epoch: its checkpoint would go on from them",
                hint="SwapEMAWeights() measures the averages, too, and they are what is exported in any case",
            )
    return list(found)


def require_settable_rate(callbacks: Sequence[keras.callbacks.Callback], model: Any) -> None:
    """Reject Keras' callbacks that set a learning rate which is a schedule: they would fail when they do.

    Args:
        callbacks: as `custom_callbacks` returns them.
        model: compiled, with the warm-up that the job asks for.

    Raises:
        ComponentError: names the callback, and whose schedule it is.
    """
    schedule = scheduled_rate(model)
    setting = (keras.callbacks.ReduceLROnPlateau, keras.callbacks.LearningRateScheduler)
    found = next((each for each in callbacks if isinstance(each, setting)), None)
    if schedule is None or found is None:
        return
    is_ours = isinstance(schedule, WarmUp) and schedule.warmup_steps
    whose = "train.learning_rate.warmup_steps makes" if is_ours else "the model is compiled with"
    raise ComponentError(
        f"the callback {type(found).__name__} sets the learning rate, but {whose} a schedule of it, which "
        "cannot be set",
        hint="leave out the one or the other"
        + (
            "; a schedule in build_model may warm up by itself"
            if is_ours
            else ", or compile it with a number"
        ),
    )


def sees_steps(callback: keras.callbacks.Callback) -> bool:
    """Return True if a callback does something at each step, and not only at the ends of epochs."""
    return any(
        getattr(getattr(callback, name), "__func__", None) is not getattr(keras.callbacks.Callback, name)
        for name in _OF_STEPS
    )


def words_of_forgotten(callbacks: Sequence[keras.callbacks.Callback]) -> str:
    """Return what callbacks of a resumed training no longer know, and export by; "": nothing."""
    if not any(isinstance(each, keras.callbacks.EarlyStopping) for each in callbacks):
        return ""
    return (
        "Keras' EarlyStopping has forgotten the epochs before this resumption, and their best weights; "
        "train.early_stopping.patience and train.checkpoint.serve_best keep both"
    )
