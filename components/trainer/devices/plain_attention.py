"""Keeps Keras on JAX from its flash attention for TPUs, which computes other numbers than elsewhere."""

from typing import Any, Literal

from slipway.components.errors import ComponentError


def keep_plain_attention() -> None:
    """Let Keras on JAX compute attention on a TPU as it does on a CPU, in this process; needs JAX.

    Keras 3.15 takes a kernel (Splash) for attention without dropout and mask. With it, each position sees
    only those before it, and the scores are not divided by the root of the head's size. A step that is
    divided among several devices does not compile with it. `keras.config.disable_flash_attention` would not
    do: it counts for Keras' layers, and not for `keras.ops.dot_product_attention`.
    """
    from keras.src.backend.jax import nn

    nn._can_use_flash_attention = _no_flash_attention


def _no_flash_attention(*_: Any, raise_error: bool = False) -> Literal[False]:
    """Answer in the place of Keras' function whether attention can be computed by flash attention.

    Args:
        raise_error: whether the user asks for it.

    Raises:
        ComponentError: the user asks for it.
    """
    if raise_error:
        raise ComponentError(
            "flash_attention=True: on a TPU, Keras' flash attention takes each position to see only those "
            "before it, and several devices cannot compile it",
            hint="leave flash_attention out: attention is then computed in full",
        )
    return False
