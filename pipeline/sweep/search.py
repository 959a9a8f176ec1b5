"""Chooses the settings that a sweep tries next: the grid in order, or proposals by Optuna."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy

from slipway.components.nearest import nearest
from slipway.pipeline.errors import UsageError
from slipway.pipeline.sweep.space import Choice, Params, Space

Method = Literal["grid", "random", "bayes"]
METHODS: tuple[str, ...] = get_args(Method)
DEFAULT_TRIALS = 20

Curve = Mapping[int, float]
"""The value of a metric after each epoch, by the number of the epoch, from 1."""


class Tried(NamedTuple):
    """An earlier trial.

    Attributes:
        value: its metric; None if it has no value.
        pruned: for a trial that was pruned, a metric of its epochs, better and worse in the same direction as
            the value; None for others.
        is_running: whether it still runs, side by side with the next.
    """

    params: Params
    value: float | None
    pruned: Curve | None = None
    is_running: bool = False


def choose(space: Space, *, method: str | None, trials: int | None) -> tuple[Method, int]:
    """Return the method and the number of trials; by default a whole grid, or 20 trials from ranges.

    Raises:
        UsageError: there is no such method, it does not fit the space, or Optuna is not installed.
    """
    size = space.size
    if trials is not None and trials < 1:
        raise UsageError(f"--trials {trials}: must be at least 1.")
    if method is None:
        method = "grid" if size is not None and size <= (trials or size) else "bayes"
    if method not in METHODS:
        near = nearest(method, METHODS)
        raise UsageError(
            f"--method {method}: must be one of {', '.join(METHODS)}{f'; nearest: {near}' if near else ''}."
        )
    if method == "grid":
        if size is None:
            ranges = ", ".join(axis.key for axis in space.axes if not isinstance(axis, Choice))
            raise UsageError(
                f"--method grid: a range has infinitely many values: {ranges}.",
                hint="list values, KEY=A,B,C, or use --method bayes or random",
            )
        if trials is not None and trials < size:
            raise UsageError(
                f"--trials {trials}: the grid has {size} settings.",
                hint=f"--trials {size}, or try only some: --method random",
            )
        return "grid", size
    optuna_for("a random or Bayesian search")
    return cast(Method, method), trials or min(DEFAULT_TRIALS, size or DEFAULT_TRIALS)


def propose(
    space: Space,
    method: Method,
    earlier: Sequence[Tried],
    *,
    is_lower_better: bool,
    seed: int,
) -> Params:
    """Return the next settings.

    The same arguments give the same settings, so an interrupted sweep continues as if it had not been
    interrupted.

    Args:
        earlier: the trials before, in order.
    """
    if method == "grid":
        return list(space.grid())[len(earlier)]
    optuna = optuna_for(f"--method {method}")
    distributions = {axis.key: _distribution(axis) for axis in space.axes}
    # Each proposal has its own seed: after a restart, a shared sampler would repeat its first numbers.
    kind = optuna.samplers.RandomSampler if method == "random" else optuna.samplers.TPESampler
    # The seed and the number of trials are mixed. If they were added, the next seed would repeat the same
    # proposals one trial earlier.
    mixed = int(numpy.random.SeedSequence([seed, len(earlier)]).generate_state(1)[0])
    study = optuna.create_study(
        sampler=kind(seed=mixed), direction="minimize" if is_lower_better else "maximize"
    )
    states = optuna.trial.TrialState
    for tried in earlier:
        without = states.FAIL if tried.pruned is None else states.PRUNED
        state = states.RUNNING if tried.is_running else without
        study.add_trial(
            optuna.trial.create_trial(
                params={axis.key: _read(axis, tried.params[axis.key]) for axis in space.axes},
                distributions=distributions,
                value=tried.value,
                state=state if tried.value is None else states.COMPLETE,
                intermediate_values=dict(tried.pruned or {}),
            )
        )
    found = study.ask(distributions).params
    return {
        axis.key: found[axis.key] if isinstance(axis, Choice) else axis.text(found[axis.key])
        for axis in space.axes
    }


def optuna_for(what: str) -> Any:
    """Import Optuna, which trial by trial says nothing.

    Args:
        what: what needs it, for the error.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise UsageError(
            f"{what} needs the package optuna, which is not installed.",
            hint="pip install 'optuna>=4.5,<6' (the extra `sweep`); a grid, KEY=A,B,C, without --prune needs "
            "none",
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _distribution(axis: Any) -> Any:
    distributions = optuna_for("a range").distributions
    if isinstance(axis, Choice):
        return distributions.CategoricalDistribution(axis.values)
    if axis.scale == "int":
        return distributions.IntDistribution(int(axis.low), int(axis.high))
    return distributions.FloatDistribution(axis.low, axis.high, log=axis.scale == "log")


def _read(axis: Any, text: str) -> Any:
    if isinstance(axis, Choice):
        return text
    # A number rounded to six digits may lie outside the range.
    value = min(max(float(text), axis.low), axis.high)
    return int(value) if axis.scale == "int" else value
