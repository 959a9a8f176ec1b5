"""Records the lines of the user's code that make the layers of a model, and that compile it."""

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import keras

from slipway.components.trainer.user_model import own_line


class Definitions:
    """Lines of the user's code, such as "model.py, line 12"; "" where it is not known."""

    def __init__(self) -> None:
        self._made: dict[int, str] = {}
        self._compiled: dict[int, str] = {}

    def of(self, layer: Any) -> str:
        """Return the line that made a layer."""
        return self._made.get(id(layer), "")

    def by_name(self, model: Any) -> dict[str, str]:
        """Return the lines that made the layers of a model, by their names."""
        return {each.name: self.of(each) for each in model._flatten_layers(include_self=False)}

    def of_compile(self, model: Any) -> str:
        """Return the line of the last `model.compile`."""
        return self._compiled.get(id(model), "")


@contextmanager
def definitions(dotted_path: str) -> Iterator[Definitions]:
    """Record the lines while a model is built. The layers must live as long as what is recorded of them.

    Args:
        dotted_path: the dotted path of `build_model`.
    """
    found = Definitions()

    make, compile_model = keras.layers.Layer.__new__, keras.Model.compile

    # Not __init__, whose arguments Keras looks at.
    def made(kind: type, *args: Any, **kwargs: Any) -> Any:
        layer = make(kind, *args, **kwargs)
        found._made[id(layer)] = _line(dotted_path)
        return layer

    @functools.wraps(compile_model)
    def compiled(self: Any, *args: Any, **kwargs: Any) -> Any:
        found._compiled[id(self)] = _line(dotted_path)
        return compile_model(self, *args, **kwargs)

    is_inherited = "compile" not in vars(keras.Model)
    keras.layers.Layer.__new__, keras.Model.compile = staticmethod(made), compiled
    try:
        yield found
    finally:
        keras.layers.Layer.__new__ = staticmethod(make)
        if is_inherited:
            del keras.Model.compile
        else:
            keras.Model.compile = compile_model


def _line(dotted_path: str) -> str:
    frames = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        frames.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return own_line(reversed(frames), dotted_path)
