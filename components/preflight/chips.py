"""What a chip can do and what it costs: one row a generation. Pure.

Sources, by column:
    peak, bandwidth: the pages of v3, v5e and v6e in the documentation of Cloud TPU, read in November 2026 (a
        bfloat16 chip). v2 and v7 are from memory of the same pages, and were not checked.
    interconnect: v5e and v6e from their pages (1,600 and 3,200 Gbit/s a chip; another edition of v5e's says
        400 GB/s in both directions); v2, v3 and v7 from memory, not checked.
    usable memory: what libtpu 0.0.42 says a program may use of a device, when it refuses one; v7 and v2
        from the topology that it describes.
    price: US dollars of an hour of one chip, on demand, in the USA: from memory of the price list of
        PRICES_OF, not checked; Vertex AI adds a fee of its own. `--price` sets the one that you pay.
No number of this table was measured by us.
"""

from collections.abc import Mapping
from dataclasses import dataclass

PRICES_OF = "2025-06"
"""The month that the prices are remembered from."""
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Chip:
    """One generation of TPU.

    Attributes:
        peak_flops: bfloat16 operations of a chip a second.
        bandwidth_bytes: that a chip's memory gives and takes a second.
        link_bytes: that a chip sends and receives through its links a second.
        usable_bytes: of memory, of one device.
        devices: that a chip shows to JAX: 2 where each core is one.
        unit: side of the square that multiplies matrices; smaller ones are padded.
        price_usd: of one chip-hour; None: we know none.
    """

    peak_flops: float
    bandwidth_bytes: float
    link_bytes: float
    usable_bytes: int
    devices: int = 1
    unit: int = 128
    price_usd: float | None = None


CHIPS: Mapping[str, Chip] = {
    "v2": Chip(
        peak_flops=45e12,
        bandwidth_bytes=700e9,
        link_bytes=248e9,
        usable_bytes=round(7.48 * GIB),
        devices=2,
        price_usd=4.50 / 4,
    ),
    "v3": Chip(
        peak_flops=123e12,
        bandwidth_bytes=900e9,
        link_bytes=328e9,
        usable_bytes=round(15.48 * GIB),
        devices=2,
        price_usd=8.00 / 4,
    ),
    "v5e": Chip(
        peak_flops=197e12,
        bandwidth_bytes=819e9,
        link_bytes=200e9,
        usable_bytes=round(15.75 * GIB),
        price_usd=1.20,
    ),
    "v6e": Chip(
        peak_flops=918e12,
        bandwidth_bytes=1600e9,
        link_bytes=400e9,
        usable_bytes=round(31.25 * GIB),
        unit=256,
        price_usd=2.70,
    ),
    "v7": Chip(
        peak_flops=2307e12,
        bandwidth_bytes=7380e9,
        link_bytes=1200e9,
        usable_bytes=round(94.75 * GIB),
        devices=2,
        unit=256,
    ),
}
"""Chips by the generation that stands before the "-" of a slice's name."""
