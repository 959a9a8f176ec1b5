"""The slices that can be compiled for although Vertex AI does not rent them. Pure.

All of v4 and v5p, and those of v7 with several hosts. They are had on GKE or by the API of Cloud TPU;
`train.tpu` does not take them. As Google names them, the number of a v4 or v5p is that of its cores, of which
a chip has two and JAX makes one device; that of a v7 is that of its devices, as in `vertex_tpu_slices`. Hosts
have four chips.

Sources: documentation of Cloud TPU, pages on v4, v5p and TPU7x; "Plan TPUs in GKE", for 2x2x4. libtpu
0.0.42.1 describes all of them, with these hosts and devices, and larger ones up to 8x8x16.
"""

from collections.abc import Iterator, Mapping

from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.question_and_answer import Slice

CHIPS_OF_HOST = 4
# By number of chips.
_TOPOLOGIES = {
    4: "2x2x1",
    8: "2x2x2",
    16: "2x2x4",
    32: "2x4x4",
    64: "4x4x4",
    128: "4x4x8",
    256: "4x8x8",
}


def _table() -> Iterator[Slice]:
    for generation in ("v4", "v5p", "v7"):
        for chips, topology in _TOPOLOGIES.items():
            if generation == "v7" and chips == CHIPS_OF_HOST:  # Vertex AI rents this one
                continue
            yield Slice(
                name=f"{generation}-{2 * chips}",
                generation=generation,
                devices=chips * CHIPS[generation].devices,
                hosts=chips // CHIPS_OF_HOST,
                topology=topology,
                memory_bytes=CHIPS[generation].usable_bytes,
                has_tensorflow=generation != "v7",
            )


OTHER_SLICES: Mapping[str, Slice] = {each.name: each for each in _table()}
"""Slices by name."""
