"""The expected time of a step: its least time times the factor by which published steps took longer. Pure."""

import functools
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.padding import operations
from slipway.components.preflight.published_models import Kind
from slipway.components.preflight.published_steps import PUBLISHED, PublishedStep
from slipway.components.preflight.question_and_answer import Layer, Slice
from slipway.components.preflight.roofline import Bound, Estimate, estimate

FEWEST = 3
"""The minimum number of rows of one kind and bound, or of a generation of these, that say what to expect."""
FAR_SHORTER = 0.1
"""A step whose least time is below this share of the shortest row's is not comparable to any row."""
LEAST_ATTENTION = 0.1
"""A model whose attention has a smaller share of the operations with weights is like no row of the table: of
these, the BERT-like model of 480B has the smallest, 0.14."""
NO_LEAST = {"v4"}
"""Generations on which published steps took less than their least time, where memory bounds it.

ResNet-50 with 128 images a device took 39.1 and 37.1 ms on v4-128 (Google's logs of MLPerf 0.7 and 1.0),
against 52.8 ms for the 65.0 GB that libtpu 0.0.42.1 counts for Keras' program: it counts what the chip's own
memory serves, and theirs may move less.
"""
UNLIKE_ALL = {
    "callback": "they call no host",
    "fast": "a fast look counts the operations and bytes of another program",
    "float16": "they compute in bfloat16",
    "float32": "they compute in bfloat16",
    "float64": "they compute in bfloat16",
    "long_loop": "they have no long loop",
    "loop": "they have no loop whose turns the compiler does not count",
    "run_eagerly": "they are compiled whole",
}
"""By rule: why a step with a finding of that rule is not comparable to the rows of the table."""
_WORDS: Mapping[Kind, str] = {"attention": "models with attention", "convolution": "models of convolutions"}


def least(row: PublishedStep) -> Estimate:
    """Return the roofline estimate for a published training."""
    where = Slice(name=row.slice, generation=row.generation, devices=row.devices)
    return estimate(row.counted, where, CHIPS[row.generation])


def ratio(row: PublishedStep) -> float:
    """Return a published step's time divided by its least time at the roofline."""
    return row.step_s / least(row).step_s


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The spread of the ratios of published to least times, over the rows of one kind and bound.

    Attributes:
        generation: the generation of these rows; None if they are of all generations.
        models: the number of different models among them.
    """

    generation: str | None
    rows: int
    models: int
    median: float
    low: float
    high: float
    shortest_s: float


@functools.cache
def spread(kind: Kind, bound: Bound, generation: str | None = None) -> Spread | None:
    """Return the spread of the table's rows of a kind and bound; None if there are fewer than `FEWEST`.

    Args:
        generation: that of the rows; None for all.
    """
    rows = [each for each in PUBLISHED if each.network.kind == kind and least(each).bound == bound]
    rows = [each for each in rows if generation in {None, each.generation}]
    if len(rows) < FEWEST:
        return None
    ratios = [ratio(each) for each in rows]
    return Spread(
        generation=generation,
        rows=len(rows),
        models=len({each.network.name for each in rows}),
        median=statistics.median(ratios),
        low=min(ratios),
        high=max(ratios),
        shortest_s=min(least(each).step_s for each in rows),
    )


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The expectation about the time of a step.

    Attributes:
        spread: the factors by which the step may take longer than its least time; None if no expectation
            can be derived.
        why: what the expectation is based on, or why there is none.
    """

    spread: Spread | None
    why: str


def kind_of(layers: Sequence[Layer]) -> Kind | None:
    """Return the kind of a model, by the layers with most operations; None if the table has none like it."""
    words = ("RNN", "LSTM", "GRU", "Depthwise", "Separable")
    if any(word in each.kind for each in layers for word in words):
        return None
    work = [(each.kind, operations(each)) for each in layers if each.kind != "Embedding"]
    whole = sum(size for _, size in work)
    convolutions = sum(size for kind, size in work if kind.startswith("Conv"))
    has_attention = any("Attention" in kind for kind, _ in work)
    if has_attention == (convolutions > 0.5 * whole):
        return None
    # Keras' layers of attention are made of EinsumDense; others may have weights of their own.
    attention = sum(size for kind, size in work if kind == "EinsumDense" or "Attention" in kind)
    if has_attention and attention < LEAST_ATTENTION * whole:
        return None
    return "attention" if has_attention else "convolution"


def _is_far_shorter(found: Estimate, alike: Spread) -> bool:
    return found.step_s < FAR_SHORTER * alike.shortest_s


def expect(found: Estimate, layers: Sequence[Layer], *, generation: str, rules: Collection[str]) -> Expected:
    """Return how much longer than its least time a step is expected to take.

    The rows of its own generation say so if there are enough, for they differ by generation more than by
    model; else those of all.

    Args:
        generation: that of the slice.
        rules: the rules of the findings about the step.
    """
    apart = next((words for rule, words in UNLIKE_ALL.items() if rule in rules), None)
    if apart is not None:
        return Expected(spread=None, why=f"no published step is like this one: {apart}")
    if generation in NO_LEAST and found.bound == "memory":
        why = (
            f"on {generation} memory-bound steps were published that took 0.7 times their least time, "
            "which counts what on-chip memory serves, too"
        )
        return Expected(spread=None, why=why)
    kind = kind_of(layers)
    if kind is None:
        return Expected(spread=None, why="all published steps are of attention or convolution models")
    published = f"published steps of {_WORDS[kind]}"
    every = spread(kind, found.bound)
    if every is None:
        return Expected(spread=None, why=f"too few {published} are {found.bound}-bound")
    if _is_far_shorter(found, every):
        why = f"the {found.bound}-bound {published} take at least {every.shortest_s * 1e3:.0f} ms, or longer"
        return Expected(spread=None, why=why)
    own = spread(kind, found.bound, generation)
    alike = every if own is None or _is_far_shorter(found, own) else own
    only = f" on {alike.generation}" if alike.generation else ""
    only += "" if alike.models > 1 else " (of one model)"
    return Expected(
        spread=alike,
        why=f"{alike.rows} {found.bound}-bound {published}{only} took {alike.low:.1f} to {alike.high:.1f} "
        "times their least time; measured by others, not by us",
    )
