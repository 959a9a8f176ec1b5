"""How boosted trees grow: which rows are held out, when it ends, and what a rare class changes."""

import numpy as np
import pytest
from rows_for_trees import FEATURES, drawn_values, growth_of, labels_of
from threadpoolctl import threadpool_info, threadpool_limits

from slipway.components.errors import ComponentError
from slipway.components.trainer.boosting import growing
from slipway.components.trainer.boosting.growing import (
    grow,
    has_rare_class,
    held_out_parts,
    least_loss,
    loss_of,
    part_of,
    penalty_of_categories,
    scores_of,
    tries_linear,
)
from slipway.components.trainer.boosting.matrix import Columns
from slipway.components.trainer.custom_fit import Rows
from slipway.components.trainer.models import boosted_trees

pytestmark = pytest.mark.filterwarnings("default")  # TensorFlow's own imports warn


@pytest.mark.parametrize(("classes", "room"), [(None, {"max_rounds": 3}), (4, {"max_trees": 12})])
def test_no_more_trees_grow_than_there_is_room_for(classes, room):
    values = drawn_values(200)
    rows = Rows(features=FEATURES, values=values, labels=labels_of(values, classes), seed=1)
    wanted = {"classes": classes, "patience_rounds": 30, "min_leaf_rows": 5, "linear_rows": 1, **room}
    model = boosted_trees.build_model(FEATURES, wanted)
    boosted_trees.fit(model, rows, wanted)
    assert model.get_layer("trees").size.numpy()[0] == 3 * (classes or 1)


def _panel(persons, seed):
    """Eight rows of each person, whose own level the columns tell only by telling who it is."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(persons), 8)
    size = rng.normal(size=(persons, 1)).astype(np.float32)[who]
    pair = np.hstack([rng.normal(size=(persons, 1))[who], rng.normal(size=(len(who), 1))]).astype(np.float32)
    labels = 0.5 * pair[:, 1] + 0.3 * size[:, 0] + rng.normal(size=persons)[who]
    return {"size": size, "pair": pair}, labels + 0.2 * rng.normal(size=len(who))


def test_neighbours_or_groups_are_held_out_together_and_a_person_is_not_learned_by_heart():
    columns = Columns.of({name: FEATURES[name] for name in ("size", "pair")})
    values, labels = _panel(200, seed=1)
    others, truth = _panel(200, seed=2)
    persons = np.unique(values["size"][:, 0], return_inverse=True)[1]
    losses, rounds = {}, {}
    for held_out, settings in {
        "rows": {},
        "blocks": {"held_out": "blocks"},
        "groups": {"groups": persons},
    }.items():
        growth = growth_of(None, max_rounds=60, linear_rows=2000, **settings)
        grown = grow(columns.matrix(values), labels, columns, growth)
        rounds[held_out] = grown.share * grown.trees.n_iter_ if grown.trees is not None else 0
        scores = np.zeros((len(truth), 1)) + grown.offsets(1)
        if grown.trees is not None:
            matrix = columns.matrix(others)
            scores += grown.share * (
                scores_of(grown.trees, matrix, growth) - grown.trees._baseline_prediction
            )
        if grown.linear is not None:
            scores += (1 - grown.share) * columns.one_hot(columns.matrix(others)) @ grown.linear[0]
        losses[held_out] = loss_of(scores, truth, None)
    for whole in ("blocks", "groups"):
        assert rounds[whole] < rounds["rows"] / 4
        assert losses[whole] < 0.95 * losses["rows"]


def _rare(rows, seed):
    """About one row in 300 is of the second class, which is likelier the greater the size."""
    values = drawn_values(rows, seed)
    odds = np.exp(3 * values["size"][:, 0] - 9.5)
    return values, (np.random.default_rng(seed).random(rows) < odds / (1 + odds)).astype(np.float32)


def _told_exactly(rows, seed):
    """One row in 200 is of the second class, and no other row has its size."""
    values, labels = drawn_values(rows, seed), np.zeros(rows, np.float32)
    labels[::200], values["size"][::200] = 1, 9.0
    return values, labels


@pytest.mark.parametrize(
    ("classes", "rare", "width", "is_tried"),
    [(2, 99, 5, True), (2, 100, 5, False), (2, 99, 4000, False), (3, 99, 5, False), (None, 99, 5, False)],
)
def test_linear_model_is_tried_beyond_its_rows_where_one_of_two_classes_is_rare(
    classes, rare, width, is_tried
):
    labels = np.repeat([0, 1], [3000 - rare, rare])
    columns = Columns(names=("shop", "size"), categories=(width,))
    growth = growth_of(classes, linear_rows=2000)
    assert tries_linear(labels, columns, growth) == is_tried
    assert tries_linear(labels[-2000:], columns, growth), "few rows"
    assert not tries_linear(labels, columns, growth_of(classes)), "none is wanted"


def test_what_is_additive_in_a_few_rows_of_a_class_is_learned_by_the_linear_model():
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(3000, 4)).astype(np.float32)
    labels = (matrix.sum(axis=1) + rng.normal(size=3000) > 4.7).astype(int)
    assert labels.sum() < 100
    columns = Columns(names=("a", "b", "c", "d"), categories=())
    grown = grow(matrix, labels, columns, growth_of(2, linear_rows=2000, max_rounds=30))
    assert grown.linear is not None
    assert grown.losses[grown.share] < grown.losses[1.0]


@pytest.mark.parametrize(
    ("effect", "held_out", "bends"),
    [(np.abs, "rows", True), (np.positive, "rows", False), (np.abs, "blocks", False)],
    ids=["high at both ends", "straight", "blocks do not tell where an effect leads to"],
)
def test_an_effect_bends_where_held_out_rows_show_it(effect, held_out, bends):
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(2000, 2)).astype(np.float32)
    labels = effect(matrix[:, 0]) + matrix[:, 1] + rng.normal(size=2000)
    columns = Columns(names=("age", "size"), categories=())
    growth = growth_of(None, linear_rows=2000, held_out=held_out)
    grown = grow(matrix, labels, columns, growth)
    assert (grown.bends is not None) == bends
    if bends:
        assert grown.share < 0.5
        assert len(grown.linear[0]) == 2 + grown.bends.size
        assert grown.losses[grown.share] < 1.02, "chance alone is 1"


def _few_rows(seed, effect):
    """300 rows of four numbers, the first with this effect, and the truth about 2,000 others."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(2300, 4)).astype(np.float32)
    truth = effect(matrix[:, 0]) + matrix[:, 1]
    return matrix, truth + 2 * rng.normal(size=2300), truth


def test_few_rows_are_learned_from_by_one_thread(monkeypatch):
    """Two threads of a process of low priority took 39 s on a busy machine for what one computes in 0.3."""
    threads, linear = set(), growing._linear

    def watched(*args):
        threads.update(each["num_threads"] for each in threadpool_info())
        return linear(*args)

    monkeypatch.setattr(growing, "_linear", watched)
    matrix, labels, _ = _few_rows(1, np.abs)
    with threadpool_limits(2):
        grow(
            matrix[:200],
            labels[:200],
            Columns(names=tuple("abcd"), categories=()),
            growth_of(None, linear_rows=200),
        )
    assert threads == {1}


def _scores(grown, columns, matrix, growth):
    scores = np.zeros((len(matrix), 1))
    if grown.trees is not None:
        scores += grown.share * scores_of(grown.trees, matrix, growth)
    table = columns.one_hot(matrix)
    if grown.bends is not None:
        table = np.hstack([table, columns.beyond(matrix, grown.bends)])
    kernel, bias = grown.linear
    return scores + (1 - grown.share) * (table @ kernel + bias)


def _error(grown, columns, matrix, truth, growth):
    return np.mean((_scores(grown, columns, matrix, growth) - truth[:, None]) ** 2)


def test_what_a_few_held_out_rows_show_by_chance_bends_no_effect():
    columns = Columns(names=("a", "b", "c", "d"), categories=())
    bent = 0
    for seed in range(12):
        matrix, labels, _ = _few_rows(seed, np.positive)
        grown = grow(matrix[:300], labels[:300], columns, growth_of(None, linear_rows=2000))
        bent += grown.bends is not None
    assert bent == 0


@pytest.mark.parametrize("gained", [0.1, 0.3])
@pytest.mark.parametrize("weights", [None, np.full(100, 7.0), np.repeat([1.0, 0.0], [100, 900])])
def test_bends_are_chosen_beyond_one_standard_error(gained, weights):
    rows = 100 if weights is None else len(weights)
    gains = np.zeros(rows)
    gains[:100] = np.where(np.arange(100) % 2, 1.0, -1.0) + gained
    gains[100:] = -5
    losses = {(0, 0.0): np.full(rows, 9.0), (0, 0.5): np.full(rows, 8.0), (1, 0.25): 8.0 - gains}
    assert least_loss(losses, weights) == ((1, 0.25) if gained > 0.2 else (0, 0.5))


def test_bends_are_held_back_more_than_slopes_which_few_rows_need(monkeypatch):
    columns, growth = Columns(names=("a", "b", "c", "d"), categories=()), growth_of(None, linear_rows=2000)
    errors = {}
    for penalty in (None, 1.0):
        if penalty:
            monkeypatch.setattr(growing, "_BEND_PENALTY", penalty)
        errors[penalty] = []
        for seed in range(6):
            matrix, labels, truth = _few_rows(seed, lambda x: 2 * np.abs(x))
            grown = grow(matrix[:300], labels[:300], columns, growth)
            assert grown.bends is not None
            errors[penalty].append(_error(grown, columns, matrix[300:], truth[300:], growth))
    assert np.mean(errors[None]) < 0.95 * np.mean(errors[1.0])


def test_of_many_categories_none_follows_its_few_rows_of_a_rare_class():
    rng = np.random.default_rng(1)
    matrix = np.stack([rng.integers(0, 100, 12_000), *rng.normal(size=(2, 12_000))], axis=1).astype(
        np.float32
    )
    chance = 1 / (1 + np.exp(5.5 - matrix[:, 1] - matrix[:, 2]))
    labels = (rng.random(12_000) < chance).astype(int)
    growth, losses = growth_of(2, linear_rows=4000), []
    for columns, table in (
        (Columns(names=("shop", "a", "b"), categories=(100,)), matrix),
        (Columns(names=("a", "b"), categories=()), matrix[:, 1:]),
    ):
        grown = grow(table[:4000], labels[:4000], columns, growth)
        losses.append(loss_of(_scores(grown, columns, table[4000:], growth), labels[4000:], 2))
    assert losses[0] < 1.1 * losses[1], losses


@pytest.mark.parametrize(("told", "penalty"), [(1.0, 0.01), (0.0, 10.0)], ids=["all", "nothing"])
@pytest.mark.parametrize("weights", [None, np.full(400, 7.0)])
def test_categories_have_little_penalty_where_they_tell_nearly_all(told, penalty, weights):
    rng = np.random.default_rng(1)
    columns, growth = Columns(names=("shop", "size"), categories=(40,)), growth_of(None, linear_rows=2000)
    matrix = np.stack([rng.integers(0, 40, 400), rng.normal(size=400)], axis=1).astype(np.float32)
    labels = told * rng.normal(size=40)[matrix[:, 0].astype(int)] + (1.01 - told) * rng.normal(size=400)
    parts = held_out_parts(labels, growth)
    hot = columns.one_hot(matrix)
    assert penalty_of_categories(hot, labels, columns, growth, parts, weights) == penalty


@pytest.mark.parametrize("made", [_rare, _told_exactly])
def test_trees_are_not_too_sure_of_a_rare_class(made):
    columns, growth = Columns.of(FEATURES), growth_of(2, learning_rate=0.1, min_leaf_rows=20, max_rounds=60)
    values, labels = made(20_000, seed=1)
    grown = grow(columns.matrix(values), labels, columns, growth)
    others, truth = made(20_000, seed=2)
    constant = np.full((len(truth), 1), np.log(labels.mean() / (1 - labels.mean())))
    loss = loss_of(scores_of(grown.trees, columns.matrix(others), growth), truth, 2)
    assert loss < 0.8 * loss_of(constant, truth, 2)


@pytest.mark.parametrize(
    ("classes", "labels", "is_rare"),
    [
        (2, [0] * 19 + [1], False),
        (2, [0] * 20 + [1], True),
        (2, [0, *[1] * 20], True),
        (3, [0] * 99 + [1], True),
        (3, [0, 1, 2] * 9, False),
        (4, [0] * 30 + [1] * 30 + [3], True),
        (12, [*range(12)] * 9, False),
        (None, [0.0] * 99 + [1.0], False),
    ],
)
def test_a_class_is_rare_below_one_row_in_twenty(classes, labels, is_rare):
    assert has_rare_class(np.array(labels), growth_of(classes)) == is_rare


def test_a_block_is_of_neighbours_and_each_part_has_some_from_everywhere():
    part = part_of(np.zeros(1000), growth_of(None, held_out="blocks"), count=5)
    assert np.bincount(part).tolist() == [200] * 5
    assert (np.diff(part) != 0).sum() < 50
    assert part_of(np.zeros(3), growth_of(None, held_out="blocks"), count=5).shape == (3,)


def test_rows_of_one_group_are_in_one_part_wherever_they_stand():
    groups = np.random.default_rng(1).permutation(np.repeat(np.arange(100) * 7, 10))
    part = part_of(np.zeros(1000), growth_of(2, groups=groups), count=5)
    assert np.bincount(part).tolist() == [200] * 5
    assert len({*zip(groups.tolist(), part.tolist(), strict=True)}) == 100
    few = part_of(np.zeros(1000), growth_of(2, groups=groups % 4), count=5)
    assert np.bincount(few).tolist() == [200] * 5, "with fewer groups than parts, rows are held out"
    blocks = [growth_of(None, held_out="blocks", groups=each) for each in (groups, None)]
    np.testing.assert_array_equal(*(part_of(np.zeros(1000), each, count=5) for each in blocks))


@pytest.mark.parametrize(("rows", "times"), [(25, 5), (6_000, 2), (24_000, 1)])
@pytest.mark.parametrize("held_out", ["rows", "blocks"])
def test_a_class_of_one_row_is_never_held_out_as_a_whole(rows, times, held_out):
    growth = growth_of(2, held_out=held_out)
    for place in range(0, rows, rows // 25):
        labels = (np.arange(rows) == place).astype(float)
        found = held_out_parts(labels, growth)
        assert len(found) == min(times, 4 if rows < 5_000 else times)
        assert all(held.any() and not held[place] for held in found)


def test_few_rows_are_held_out_one_by_one_and_too_few_are_refused():
    found = held_out_parts(np.array([0.0, 1.0, 2.0]), growth_of(None))
    assert [held.sum() for held in found] == [1, 1, 1], "no part is of no row, which scikit-learn refuses"
    with pytest.raises(ComponentError, match="the train split has 2 only"):
        held_out_parts(np.array([0.0, 1.0]), growth_of(2))


def test_another_way_to_hold_out_is_refused():
    with pytest.raises(ComponentError, match="held_out is 'groups', but must be 'rows' or 'blocks'"):
        boosted_trees.build_model(FEATURES, {"held_out": "groups"})


def test_many_classes_leave_room_for_fewer_rounds():
    model = boosted_trees.build_model(FEATURES, {"classes": 50, "max_trees": 200})
    assert model.get_layer("trees").max_trees == 200


def test_losses_are_those_of_keras():
    scores, labels = np.array([[0.3], [-2.0]]), np.array([1.0, 0.0])
    chances = 1 / (1 + np.exp(-scores[:, 0]))
    assert loss_of(scores, labels, 2) == pytest.approx(-np.mean(np.log([chances[0], 1 - chances[1]])))
    assert loss_of(scores, labels, None) == pytest.approx((0.7**2 + 2**2) / 2)
    assert loss_of(np.array([[1.0, 2.0, 0.0]]), np.array([1.0]), 3) == pytest.approx(
        -2 + np.log(np.exp([1, 2, 0]).sum())
    )
