"""Speed, memory and price of the chips: one row per generation. Pure.

Sources, read in November 2026. Where two sources differ, the table has the faster number, since the estimate
is a least time; the exception is v3, whose peak is 123e12 on its page and 140e12 in JAX.
    [page]: the page on v3, v4, v5e, v5p or TPU7x (which covers v6e, too) in the documentation of Cloud TPU.
    [JAX]: jax/_src/pallas/mosaic/tpu_info.py of JAX 0.10.2.
    [Norrie]: T. Norrie et al., The Design Process for Google's Training Chips: TPUv2 and TPUv3, IEEE Micro
        41(2), 2021: four links of 500 Gbit/s; as quoted by others, the paper itself was not at hand.
    interconnect: what a chip sends, one way, through all its links. For v3, v4 and v5e it is the pod's
        all-reduce bandwidth on the page, divided by the pod's chips; for v5p, v6e and v7 half of the
        bidirectional bandwidth. A chip has a link to each side on each axis: four, or six in a 3D torus. The
        results for a link agree with How to Scale Your Model, part 2, which has 45e9 for v4, 50e9 for v5e,
        100e9 for v5p and v6e (and 100e9 for v3, where the page gives 83e9).
    hop: How to Scale Your Model has 1 µs in part 3 and half a microsecond in the problems of part 2.
    usable memory: what a program may use of a device according to libtpu 0.0.42, when it refuses a program;
        for v2, v4, v5p and v7 from the topology that it describes.
    price: on demand, as others quoted Google's price list in the given month; the list itself was not at
        hand. Vertex AI adds a fee. `preflight.prices` and `--price` set what you pay.
        v2: what Google itself reported (DAWNBench, google_resnet50_tpu_tensorflow111.json, 29 September
            2018): 4.595 an hour for four chips and an n1-standard-2, whose own 0.095 is from memory.
        v3: Synced, The Staggering Cost of Training SOTA AI Models, 27 June 2019: 8 for four chips.
        v5e: J. Austin et al., How to Scale Your Model, part 8, 3 February 2025: 1.2.
        v6e: Neowin, Google takes on Nvidia Blackwell GPUs with the new Trillium TPUs, on the day that v6e was
            generally available, December 2024: "starting at" 2.70.
        v4, v5p, v7: no quoted price was found that names its month.
No number of this table was measured by us.
"""

from collections.abc import Mapping
from dataclasses import dataclass

GIB = 2**30
HOP_S = 0.5e-6
"""The least time in which anything gets from a chip to its neighbour."""
YOURS = "yours"
"""The source of a price that the user gave."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """The price of an hour of one chip.

    Attributes:
        usd: US dollars, > 0.
        month: the month in which the price was quoted, such as 2025-02.
        source: who quoted the price, or `YOURS`.
    """

    usd: float
    month: str
    source: str = YOURS

    def __str__(self) -> str:
        return f"{self.usd:g} USD a chip-hour of {self.month}, {self.source}"


@dataclass(frozen=True, kw_only=True)
class Chip:
    """One generation of TPU.

    Attributes:
        peak_flops: bfloat16 operations per second of a chip.
        bandwidth_bytes: bytes per second that a chip's memory reads and writes.
        link_bytes: bytes per second that a chip sends through its links, one way.
        usable_bytes: memory of one device that a program may use.
        devices: JAX devices per chip: 2 if each core is a device.
        unit: side of the square matrix unit; smaller matrices are padded.
        price: the price of one chip-hour; None if unknown.
    """

    peak_flops: float
    bandwidth_bytes: float
    link_bytes: float
    usable_bytes: int
    links: int = 4
    devices: int = 1
    unit: int = 128
    price: Price | None = None


CHIPS: Mapping[str, Chip] = {
    "v2": Chip(
        peak_flops=46e12,  # [JAX]
        bandwidth_bytes=716e9,  # [JAX]
        link_bytes=250e9,  # [Norrie]
        usable_bytes=round(7.48 * GIB),
        devices=2,
        price=Price(usd=4.50 / 4, month="2018-09", source="as DAWNBench quotes it, not checked"),
    ),
    "v3": Chip(
        peak_flops=123e12,  # [page]
        bandwidth_bytes=900e9,  # [page]; [JAX]: 825e9
        link_bytes=340e12 / 1024,  # [page]
        usable_bytes=round(15.48 * GIB),
        devices=2,
        price=Price(usd=8.00 / 4, month="2019-06", source="as Synced quotes it, not checked"),
    ),
    "v4": Chip(
        peak_flops=275e12,  # [page]
        bandwidth_bytes=1230e9,  # [JAX]; [page]: 1200e9
        link_bytes=1.1e15 / 4096,  # [page]
        usable_bytes=round(30.75 * GIB),
        links=6,
    ),
    "v5e": Chip(
        peak_flops=197e12,  # [page]
        bandwidth_bytes=819e9,  # [page]
        link_bytes=51.2e12 / 256,  # [page]
        usable_bytes=round(15.75 * GIB),
        price=Price(usd=1.20, month="2025-02", source="as How to Scale Your Model quotes it, not checked"),
    ),
    "v5p": Chip(
        peak_flops=459e12,  # [page]
        bandwidth_bytes=2765e9,  # [page]; [JAX]: 2460e9
        link_bytes=1200e9 / 2,  # [page]
        usable_bytes=round(95.74 * GIB),
        links=6,
    ),
    "v6e": Chip(
        peak_flops=918e12,  # [page]
        bandwidth_bytes=1638e9,  # [page]
        link_bytes=800e9 / 2,  # [page]
        usable_bytes=round(31.25 * GIB),
        unit=256,
        price=Price(usd=2.70, month="2024-12", source="as Neowin quotes it, not checked"),
    ),
    "v7": Chip(
        peak_flops=2307e12,  # [page]
        bandwidth_bytes=7380e9,  # [page]
        link_bytes=1200e9 / 2,  # [page]
        usable_bytes=round(94.75 * GIB),
        links=6,
        devices=2,
        unit=256,
    ),
}
"""Chips by generation, which is the part of a slice's name before the "-"."""
