"""Which settings come next."""

import sys

import pytest

from slipway.pipeline.errors import UsageError
from slipway.pipeline.sweep.search import Tried, choose, propose
from slipway.pipeline.sweep.space import read_space

GRID = read_space(["a=1,2", "b=x,y"])
RANGES = read_space(["a=1,2", "r=log(1e-4,1e-2)", "n=int(1,8)"])


def run(space, method, count, value=lambda params: 0.5, seed=0):
    tried = []
    for _ in range(count):
        params = propose(space, method, tried, is_lower_better=True, seed=seed)
        tried.append(Tried(params, value(params)))
    return tried


def test_a_grid_is_tried_in_order():
    assert [params for params, *_ in run(GRID, "grid", 4)] == list(GRID.grid())


@pytest.mark.parametrize("method", ["random", "bayes"])
def test_proposals_lie_in_the_space_and_are_the_same_again(method):
    pytest.importorskip("optuna")
    tried = run(RANGES, method, 6)
    assert tried == run(RANGES, method, 6)
    assert tried != run(RANGES, method, 6, seed=1)
    assert len({params["r"] for params, *_ in tried}) == 6
    for params, *_ in tried:
        assert params["a"] in ("1", "2")
        assert 1e-4 <= float(params["r"]) <= 1e-2
        assert params["n"] in map(str, range(1, 9))


@pytest.mark.parametrize("method", ["random", "bayes"])
def test_neighbouring_seeds_propose_nothing_alike(method):
    pytest.importorskip("optuna")
    space = read_space(["x=uniform(0,1)"])
    first, second = ({params["x"] for params, *_ in run(space, method, 20, seed=seed)} for seed in (0, 1))
    assert not first & second


def test_bayes_goes_where_it_is_better():
    pytest.importorskip("optuna")
    space = read_space(["x=uniform(0,1)"])
    tried = run(space, "bayes", 40, value=lambda params: abs(float(params["x"]) - 0.3))
    late = [abs(float(params["x"]) - 0.3) for params, *_ in tried[20:]]
    assert sorted(late)[len(late) // 2] < 0.15, "by chance it is 0.25"


def test_trials_without_a_value_are_told_to_the_search():
    pytest.importorskip("optuna")
    assert run(RANGES, "bayes", 3, value=lambda params: None)


def test_a_trial_that_still_runs_is_told_to_the_search():
    pytest.importorskip("optuna")
    tried = run(RANGES, "bayes", 12)
    running = [*tried[:-1], Tried(tried[-1].params, None, is_running=True)]
    assert propose(RANGES, "bayes", running, is_lower_better=True, seed=0)


def test_bayes_keeps_away_from_where_trials_were_pruned():
    pytest.importorskip("optuna")
    space, tried = read_space(["x=uniform(0,1)"]), []
    for _ in range(40):
        params = propose(space, "bayes", tried, is_lower_better=True, seed=0)
        distance = abs(float(params["x"]) - 0.3)
        pruned = {1: distance} if distance > 0.15 else None
        tried.append(Tried(params, None if pruned else distance, pruned))
    assert sum(each.pruned is None for each in tried[20:]) > 10, "by chance it is 6"


@pytest.mark.parametrize(
    ("space", "options", "expected"),
    [
        (GRID, {}, ("grid", 4)),
        (GRID, {"trials": 9}, ("grid", 4)),
        (GRID, {"method": "grid"}, ("grid", 4)),
    ],
)
def test_listed_values_are_a_grid(space, options, expected):
    assert choose(space, **{"method": None, "trials": None, **options}) == expected


@pytest.mark.parametrize(
    ("space", "options", "expected"),
    [
        (GRID, {"trials": 3}, ("bayes", 3)),
        (GRID, {"method": "random"}, ("random", 4)),
        (RANGES, {}, ("bayes", 20)),
        (RANGES, {"method": "random", "trials": 5}, ("random", 5)),
    ],
)
def test_the_rest_is_proposed(space, options, expected):
    pytest.importorskip("optuna")
    assert choose(space, **{"method": None, "trials": None, **options}) == expected


@pytest.mark.parametrize(
    ("space", "options", "message"),
    [
        (GRID, {"method": "bayse"}, "must be one of grid, random, bayes; nearest: bayes"),
        (RANGES, {"method": "grid"}, "a range has infinitely many values: r, n"),
        (GRID, {"trials": 0}, "--trials 0: must be at least 1"),
        (GRID, {"method": "grid", "trials": 3}, "--trials 3: the grid has 4 settings"),
    ],
)
def test_what_does_not_fit_is_refused(space, options, message):
    with pytest.raises(UsageError, match=message):
        choose(space, **{"method": None, "trials": None, **options})


def test_without_optuna_the_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UsageError, match="needs the package optuna") as refused:
        choose(RANGES, method=None, trials=None)
    assert "pip install" in refused.value.hint
