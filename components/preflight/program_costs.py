"""Reads from the compiler's answer what a program holds, computes, moves and sends, or why it has none. Pure.

The program is read through its methods only; JAX is not imported.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from slipway.components.preflight.hlo import collectives
from slipway.components.preflight.memory_fit import held_bytes, shortage
from slipway.components.preflight.question_and_answer import Collective, Compiled, Slice
from slipway.components.preflight.torus import span
from slipway.components.preflight.traced_program import layer_of

_NO_PROGRAM = re.compile(r"translation rule for primitive '(\w+)' not found for platform")


def program_costs(
    program: Any, *, batch_size: int, where: Slice, devices: Sequence[Any], compile_s: float = 0.0
) -> Compiled:
    """Count what a compiled JAX program holds, computes, moves and sends.

    For the CPU, memory and collectives are not counted.

    Args:
        program: a `jax.stages.Compiled`.
        batch_size: the global batch that it was compiled for.
        where: the slice; the generation "" means the CPU.
        devices: the devices that it was compiled for, in the order of its mesh.
    """
    is_tpu = bool(where.generation)
    cost = program.cost_analysis()
    sent = tuple(_collectives(program.as_text(), where, list(devices))) if is_tpu else ()
    return Compiled(
        batch_size=batch_size,
        peak_bytes=held_bytes(program.memory_analysis()) if is_tpu else 0,
        available_bytes=where.memory_bytes,
        flops=cost.get("flops", 0.0),
        moved_bytes=cost.get("bytes accessed", 0.0),
        collective_bytes=sum(each.result_bytes for each in sent),
        collectives=sent,
        compile_s=compile_s,
    )


def _collectives(text: str, where: Slice, devices: Sequence[Any]) -> Iterator[Collective]:
    """Yield the collectives of a program, those of one kind and of groups that lie alike as one."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for sent in collectives(text):
        groups = sent.pairs or (sent.members or range(len(devices)),)
        spans = [span([devices[each].coords for each in group], where.topology) for group in groups]
        # Of pairs, those that are farthest from each other take longest.
        key = (sent.kind, len(groups[0]), max(spans, key=lambda each: each.hops))
        found.setdefault(key, []).append(sent.result_bytes)
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


def missing_program(message: str) -> str:
    """Return the operation that JAX's error says it has no program for on this platform; "" for another."""
    found = _NO_PROGRAM.search(message)
    return found[1] if found else ""


def without_program(refused: Compiled, operation: str, place: str) -> Compiled:
    """Return the report on a refused step with the words that no TPU computes an operation.

    Args:
        place: the layer and line of the user's code, in words; "" if unknown.
    """
    words = f"the operation {operation!r} has no program for a TPU"
    return replace(
        refused,
        error=f"{place}: {words}" if place else words,
        error_remedy="another way to compute it, in keras.ops; or compute it in preprocessing_fn",
    )


def refusal(batch_size: int, message: str, *, compile_s: float, layers: Collection[str] = ()) -> Compiled:
    """Return the report on a step that the compiler refuses with this message.

    Args:
        layers: the names of the model's layers.
    """
    short = shortage(message)
    names = re.search(r'op_name="([^"]*)"', message)
    return Compiled(
        batch_size=batch_size,
        error=" ".join(message.split())[:400] or "the compiler gave no reason",
        error_layer=layer_of(names[1], layers) if names else "",
        is_out_of_memory=short is not None,
        peak_bytes=short.needed_bytes if short else 0,
        available_bytes=short.available_bytes if short else 0,
        compile_s=compile_s,
    )
