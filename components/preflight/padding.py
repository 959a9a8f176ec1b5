"""Computes the work that a TPU wastes because a layer's sizes do not fill its matrix unit. Pure.

The matrix unit is a square of 128 (256 from v6e on), and memory is laid out in tiles of 8 x 128; XLA pads
smaller matrices. Sources: Cloud TPU performance guide; the pages of v6e and v7. Padding wastes much less
memory than operations, because XLA transposes a matrix if that needs less padding: libtpu 0.0.42.1 stores
8192 x 64 values on v5e and v6e without any loss, and 8192 x 130 as 8192 x 136.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from slipway.components.preflight.question_and_answer import Layer
from slipway.components.trainer.global_batch import LANES, SUBLANES

WORTH_TELLING = 0.2
"""Layers that waste a smaller share of their operations are not reported."""
WEIGHTY = 0.05
"""Layers with a smaller share of the model's operations are not reported."""
MATRIX_LAYERS = ("Dense", "EinsumDense", "Conv1D", "Conv2D", "Conv3D")


@dataclass(frozen=True, kw_only=True)
class Waste:
    """The waste of a layer that needs much padding.

    Attributes:
        layer: its name, and the line of the user's code that made it.
        units: the number of its units (outputs, features or filters).
        better: a number of units with less padding that costs the matrix unit no more time.
        share: the share of the layer's operations that is wasted, > 0 and < 1.
        memory_share: the share of the memory of its weights that is wasted, >= 0 and < 1.
        model_share: the layer's share of the model's operations, before padding.
    """

    layer: str
    units: int
    better: int
    share: float
    memory_share: float
    model_share: float


def padded(size: int, unit: int) -> int:
    """Return the size rounded up to a multiple of `unit`."""
    return -(-size // unit) * unit


def wastes(layers: Sequence[Layer], *, unit: int) -> list[Waste]:
    """Return the waste of the layers whose number of units is worth changing.

    Output layers and the sizes of the inputs are not considered, since the task determines them, nor frozen
    layers, whose weights come from elsewhere.

    Args:
        unit: the side of the chip's matrix unit.
    """
    total = sum(operations(each) for each in layers if each.kind in MATRIX_LAYERS)
    found = []
    for layer in layers:
        if layer.kind not in MATRIX_LAYERS or not layer.matrices or layer.is_output or layer.is_frozen:
            continue
        units = _units(layer, unit)
        share = 1 - units / padded(units, unit)
        if share < WORTH_TELLING or operations(layer) < WEIGHTY * total:
            continue
        found.append(
            Waste(
                layer=layer.place,
                units=units,
                better=_better(units, unit),
                share=share,
                memory_share=_memory_share(math.prod(_largest(layer)) // units, units),
                model_share=operations(layer) / total,
            )
        )
    return found


def _units(layer: Layer, unit: int) -> int:
    """Return the width of the layer's matrix. XLA may merge the heads and their size in an EinsumDense: take
    the width with the least padding."""
    shape = _largest(layer)
    if layer.kind != "EinsumDense":
        return shape[-1]
    widths = [math.prod(shape[axis:]) for axis in range(1, len(shape))]
    return max(widths, key=lambda width: width / padded(width, unit))


def _largest(layer: Layer) -> tuple[int, ...]:
    """Return the shape of the layer's own matrix, beside which it may have the narrow ones of LoRA."""
    return max(layer.matrices, key=math.prod)


def _memory_share(rows: int, units: int) -> float:
    """Return the wasted share of a matrix's memory, in the orientation that needs less padding."""
    upright = padded(rows, SUBLANES) * padded(units, LANES)
    turned = padded(rows, LANES) * padded(units, SUBLANES)
    return 1 - rows * units / min(upright, turned)


def _better(units: int, unit: int) -> int:
    """Return the multiple below if it is near, else the one above, which costs the matrix unit no more."""
    below = units // unit * unit
    return below if below and units - below <= unit // 8 else padded(units, unit)


def operations(layer: Layer) -> float:
    """Return the number of multiplications in the forward pass of one example, before padding."""
    return layer.positions * sum(math.prod(shape) for shape in layer.matrices)
