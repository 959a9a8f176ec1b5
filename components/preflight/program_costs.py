"""Reads from the compiler's answer what a program holds, computes, moves and sends, or why it has none. Pure.

The program is read through its methods only; JAX is not imported.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from slipway.components.preflight.hlo import collectives
from slipway.components.preflight.hlo_loops import Loops
from slipway.components.preflight.memory_fit import WITHIN_THE_CHIP, held_bytes, shortage
from slipway.components.preflight.question_and_answer import Collective, Compiled, Loop, Slice
from slipway.components.preflight.torus import span
from slipway.components.preflight.traced_program import layer_of

WITHOUT_EACH = (
    "ask again without one layer after the other, to find the one that is refused; then another way to "
    "compute it, in keras.ops, or compute it in preprocessing_fn"
)
"""The remedy of a refusal that there are no words for."""
_STACK = re.compile(r"\s*(?:@ 0x[0-9a-f]+|=== Source Location|-{10,}|For simplicity, JAX has removed)")


class _Refusal(NamedTuple):
    """What to say of the compiler's errors that match; \\1 stands for the group of the match.

    Attributes:
        operation: the name that JAX gives the operation, by which its place is found; "" if unknown.
    """

    pattern: re.Pattern[str]
    operation: str
    words: str
    remedy: str


_REFUSALS = (
    _Refusal(
        re.compile(r"translation rule for primitive '(\w+)' not found for platform"),
        r"\1",
        r"the operation '\1' has no program for a TPU",
        "another way to compute it, in keras.ops; or compute it in preprocessing_fn",
    ),
    _Refusal(
        re.compile(r"Only F32 and C64 types are implemented in LuDecomposition|LU decompositions are only"),
        "lu",
        "a matrix is inverted, solved or decomposed (LU) in 16 bits, which a TPU does in float32 only",
        'ops.cast(values, "float32") before it, or dtype="float32" for the layer',
    ),
    _Refusal(
        re.compile(r"Mosaic kernels cannot be automatically partitioned"),
        "pallas_call",
        "a kernel (Pallas) cannot be divided among the devices of the slice",
        "keras.ops in its place, jax.shard_map around it, or a slice of one device",
    ),
    _Refusal(
        WITHIN_THE_CHIP,
        "",
        "one operation needs more of the memory within the chip (VMEM) than there is, whatever the HBM is",
        "fewer examples (train.batch_size), shorter axes or smaller windows for that operation",
    ),
)
"""The compiler's refusals that have words, in the order in which they are asked."""


_FEW_TURNS = 16
"""Turns of a binary search among as many numbers as 16 bits have, such as a Discretization's."""
_NEXT_TO_NOTHING = 0.1
"""The share of a step's bytes that may go uncounted without a word; published steps differ by more, see
`expected.py`."""
_WITHIN = 1.01
"""Our count of a program's matrix operations holds if it exceeds the compiler's by no more, counted alike."""


def program_costs(
    program: Any,
    *,
    batch_size: int,
    where: Slice,
    devices: Sequence[Any],
    layers: Collection[str] = (),
    compile_s: float = 0.0,
) -> Compiled:
    """Count what a compiled JAX program holds, computes, moves and sends.

    For the CPU, memory, collectives and the turns of loops are not counted.

    Args:
        program: a `jax.stages.Compiled`.
        batch_size: the global batch that it was compiled for.
        where: the slice; the generation "" means the CPU.
        devices: the devices that it was compiled for, in the order of its mesh.
        layers: the names of the model's layers.
    """
    is_tpu = bool(where.generation)
    cost = program.cost_analysis()
    text = program.as_text() if is_tpu else ""
    loops, flops = Loops(text), cost.get("flops", 0.0)
    counted_once = loops.matrix_flops(once=True)
    is_counted = counted_once <= _WITHIN * flops
    moved = cost.get("bytes accessed", 0.0)
    times = loops.times if is_counted else {}
    sent = tuple(_collectives(text, where, list(devices), times)) if is_tpu else ()
    return Compiled(
        batch_size=batch_size,
        peak_bytes=held_bytes(program.memory_analysis()) if is_tpu else 0,
        available_bytes=where.memory_bytes,
        flops=flops + (loops.matrix_flops() - counted_once if is_counted else 0),
        moved_bytes=moved,
        collective_bytes=sum(each.result_bytes for each in sent),
        collectives=sent,
        loops=tuple(_of_the_user(loops, layers, is_counted=is_counted, moved_bytes=moved)),
        compile_s=compile_s,
    )


def _of_the_user(
    loops: Loops, layers: Collection[str], *, is_counted: bool, moved_bytes: float
) -> Iterator[Loop]:
    """Yield the loops that JAX was asked for, those of a layer that turn alike as one: there and back.

    A few turns that together move next to nothing, as of a search among boundaries, are left out.

    Args:
        moved_bytes: of the program, with one turn of each loop.
    """
    asked_for = [each for each in loops.found if each.name.rpartition("/")[2] == "while"]
    few = [each for each in asked_for if (each.turns or math.inf) <= _FEW_TURNS]
    if is_counted and sum(each.more_bytes for each in few) <= _NEXT_TO_NOTHING * moved_bytes:
        asked_for = [each for each in asked_for if each not in few]
    yield from dict.fromkeys(
        Loop(layer=layer_of(each.name, layers), turns=each.turns if is_counted else None)
        for each in asked_for
        if each.turns is None or each.turns > 1
    )


def _collectives(
    text: str, where: Slice, devices: Sequence[Any], times: Mapping[str, int]
) -> Iterator[Collective]:
    """Yield the collectives of a program, those of one kind and of groups that lie alike as one.

    Args:
        times: how often the parts of the program are run, by name; once if it is not there.
    """
    found: dict[tuple[Any, ...], list[int]] = {}
    for sent in collectives(text):
        groups = sent.pairs or (sent.members or range(len(devices)),)
        spans = [span([devices[each].coords for each in group], where.topology) for group in groups]
        # The pair that is farthest apart takes longest.
        key = (sent.kind, len(groups[0]), max(spans, key=lambda each: each.hops))
        found.setdefault(key, []).extend([sent.result_bytes] * times.get(sent.computation, 1))
    for (kind, members, taken), sizes in found.items():
        yield Collective(
            kind=kind,
            count=len(sizes),
            result_bytes=sum(sizes),
            devices=members,
            chips=taken.chips,
            shape=taken.shape,
            links=taken.links,
            hops=taken.hops,
        )


def refusal(
    batch_size: int,
    message: str,
    *,
    compile_s: float,
    layers: Collection[str] = (),
    place_of: Callable[[str], str] = lambda _: "",
) -> Compiled:
    """Return the report on a step that the compiler refuses with this message.

    Args:
        layers: the names of the model's layers.
        place_of: returns the layer and line of the user's code that an operation comes from; "" if unknown.
    """
    short = shortage(message)
    names = re.search(r'op_name="([^"]*)"', message)
    place, words, remedy = "", _its_own(message), WITHOUT_EACH
    for pattern, operation, known, mending in _REFUSALS:
        if found := pattern.search(message):
            place, words, remedy = place_of(found.expand(operation)), found.expand(known), mending
            break
    if short is not None:
        words, remedy = "it needs more memory than a device has", ""  # of which a rule knows more
    return Compiled(
        batch_size=batch_size,
        error=f"{place}: {words}" if place else words,
        error_layer=layer_of(names[1], layers) if names else "",
        error_cause="compiler",
        error_remedy=remedy,
        is_out_of_memory=short is not None,
        peak_bytes=short.needed_bytes if short else 0,
        available_bytes=short.available_bytes if short else 0,
        compile_s=compile_s,
    )


def _its_own(message: str) -> str:
    """Quote an error that there are no words for, without the places in the compiler that it came through."""
    reason = " ".join(_STACK.split(message, maxsplit=1)[0].split())[:300].rstrip(" :")
    return f'the compiler refuses it; its reason: "{reason}"' if reason else "the compiler gives no reason"
