"""Custom Keras callbacks: a function `callbacks(context)` beside `build_model` returns them."""

from collections.abc import Sequence

import keras

from slipway.components.errors import ComponentError
from slipway.components.trainer.custom_functions import CALLBACKS, custom_function, has_custom_callbacks
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
        ComponentError: the function returns something else, or a callback that leaves other weights in the
            model at the end of an epoch than the training goes on with.
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
        if isinstance(each, keras.callbacks.SwapEMAWeights) and each.swap_on_epoch:
            raise ComponentError(
                f"{where} returns SwapEMAWeights(swap_on_epoch=True), which leaves the averages in the model "
                "at the end of an epoch: its checkpoint would go on from them",
                hint="SwapEMAWeights() measures the averages, too, and they are what is exported in any case",
            )
    return list(found)


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
