"""Work that a TPU wastes because a layer's sizes do not fill its matrix unit. Pure.

The matrix unit is a square of 128 (256 from v6e on), and memory is laid out in tiles of 8 x 128; XLA pads
what is smaller. Sources: Cloud TPU performance guide; the pages of v6e and v7. Of memory much less is lost
than of operations, for XLA turns a matrix round where that pads less: libtpu 0.0.42.1 holds 8192 x 64 values
on v5e and v6e without any loss, and 8192 x 130 as 8192 x 136.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from slipway.components.preflight.question_and_answer import Layer
from slipway.components.trainer.global_batch import LANES, SUBLANES

WORTH_TELLING = 0.2
"""Layers that waste a smaller share of their operations are not reported."""
WEIGHTY = 0.05
"""Nor are layers with a smaller share of the model's operations."""
MATRIX_LAYERS = ("Dense", "EinsumDense", "Conv1D", "Conv2D", "Conv3D")


@dataclass(frozen=True, kw_only=True)
class Waste:
    """A layer that pads badly.

    Attributes:
        units: outputs, features or filters that it has.
        better: such a number that pads less, for the same time of the matrix unit.
        share: of the layer's operations in vain, above 0 and below 1.
        memory_share: of the memory of its weights in vain, from 0 and below 1.
        model_share: of the model's operations, before padding, that are this layer's.
    """

    layer: str
    units: int
    better: int
    share: float
    memory_share: float
    model_share: float


def padded(size: int, unit: int) -> int:
    """The next multiple of `unit`."""
    return -(-size // unit) * unit


def wastes(layers: Sequence[Layer], *, unit: int) -> list[Waste]:
    """The layers whose number of units is worth changing.

    Output layers are left alone, for their units are the problem's; so are the sizes of the inputs.

    Args:
        layers: of the model.
        unit: side of the chip's matrix unit.
    """
    work = {each.name: operations(each) for each in layers if each.kind in MATRIX_LAYERS}
    total = sum(work.values())
    found = []
    for layer in layers:
        if layer.kind not in MATRIX_LAYERS or not layer.matrices or layer.is_output:
            continue
        units = _units(layer, unit)
        share = 1 - units / padded(units, unit)
        if share < WORTH_TELLING or work[layer.name] < WEIGHTY * total:
            continue
        found.append(
            Waste(
                layer=layer.name,
                units=units,
                better=_better(units, unit),
                share=share,
                memory_share=_memory_share(math.prod(layer.matrices[0]) // units, units),
                model_share=work[layer.name] / total,
            )
        )
    return found


def _units(layer: Layer, unit: int) -> int:
    """The width of the layer's matrix: of an EinsumDense, whose heads and their sizes XLA may join, the one
    that pads least."""
    shape = layer.matrices[0]
    if layer.kind != "EinsumDense":
        return shape[-1]
    widths = [math.prod(shape[axis:]) for axis in range(1, len(shape))]
    return max(widths, key=lambda width: width / padded(width, unit))


def _memory_share(rows: int, units: int) -> float:
    """Of a matrix, laid into tiles the way round that pads less."""
    upright = padded(rows, SUBLANES) * padded(units, LANES)
    turned = padded(rows, LANES) * padded(units, SUBLANES)
    return 1 - rows * units / min(upright, turned)


def _better(units: int, unit: int) -> int:
    """The multiple below where it is near, else the one above, which costs the matrix unit no more."""
    below = units // unit * unit
    return below if below and units - below <= unit // 8 else padded(units, unit)


def operations(layer: Layer) -> float:
    """Multiplications for one example, forward, before padding."""
    return layer.positions * sum(math.prod(shape) for shape in layer.matrices)
