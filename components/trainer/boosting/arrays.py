"""Stores grown trees as arrays, with a row for each tree and a place for each node. Pure.

A node's left child is the next node, as in scikit-learn's numbering. A leaf is its own right child, and no
value goes to its left. So a walk of as many steps as the deepest tree ends in the leaf of every row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.trainer.boosting.growing import Grown
from slipway.components.trainer.boosting.matrix import Columns, Matrix

WORD_BITS = 31
"""Categories per int32, whose sign bit is not used."""


@dataclass(frozen=True)
class Forest:
    """Trees as arrays [trees, nodes].

    Attributes:
        column: int32, the column of the matrix that decides in the node.
        threshold: float32; a number goes left if it is not above the threshold. -inf for categories and
            leaves.
        left_codes: int32 [trees, nodes, words]; the categories that go left, a bit each.
        right: int32, the node's right child; the leaf itself for a leaf.
        value: float32, the answer of a leaf; 0 elsewhere.
        depth: steps from the root to the deepest leaf.
    """

    column: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float32]
    left_codes: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: npt.NDArray[np.float32]
    depth: int


def nodes_of(max_leaves: int) -> int:
    """Return the number of places for the nodes of a tree with so many leaves."""
    return 2 * max_leaves - 1


def words_of(columns: Columns) -> int:
    """Return how many integers encode a set of categories; 0 if there are none."""
    return -(-max(columns.categories) // WORD_BITS) if columns.categories else 0


def laid_out(grown: Grown, columns: Columns, *, outputs: int, max_leaves: int) -> Forest:
    """Return the grown trees as arrays, weighted by their share: round by round, `outputs` trees in each.

    Args:
        grown: with trees, fitted to the matrix that `columns` makes.
        columns: categories first, as scikit-learn itself orders them.
        outputs: scores per row.
    """
    model: Any = grown.trees
    rounds = model._predictors
    known = _known_codes(model, columns)
    shape = (len(rounds) * outputs, nodes_of(max_leaves))
    forest = Forest(
        column=np.zeros(shape, np.int32),
        threshold=np.full(shape, -np.inf, np.float32),
        left_codes=np.zeros((*shape, words_of(columns)), np.int32),
        right=np.tile(np.arange(shape[1], dtype=np.int32), (shape[0], 1)),
        value=np.zeros(shape, np.float32),
        depth=max(tree.get_max_depth() for of_round in rounds for tree in of_round),
    )
    for number, of_round in enumerate(rounds):
        for place, output, factor in grown.answered(outputs):
            tree = of_round[place]
            _lay(forest, number * outputs + output, tree, known)
            forest.value[number * outputs + output] *= factor * grown.share
    return forest


def in_the_middle(forest: Forest, matrix: Matrix) -> Forest:
    """Return the same trees, with each threshold halfway between the two matrix values that it separates.

    scikit-learn takes some of its thresholds from the rows: where values repeat, a threshold is one of them,
    and a row whose number is rounded differently (see `rounding`) would go to the other side.

    Args:
        forest: grown from the matrix.
        matrix: [rows, columns], with two different values in each column that decides.
    """
    threshold = forest.threshold.copy()
    by_number = np.isfinite(threshold)
    for column in np.unique(forest.column[by_number]):
        here = by_number & (forest.column == column)
        values = np.unique(matrix[:, column]).astype(np.float64)
        above = np.searchsorted(values, threshold[here], side="right")
        parts = (above > 0) & (above < len(values))
        above = np.clip(above, 1, len(values) - 1)
        middle = floor32((values[above - 1] + values[above]) / 2)
        threshold[here] = np.where(parts, middle, threshold[here])
    return replace(forest, threshold=threshold)


def _known_codes(model: Any, columns: Columns) -> list[npt.NDArray[np.int64]]:
    """Return each categorical column's codes, in the order of scikit-learn's own numbers for them."""
    if not columns.categories:
        return []
    encoder = model._preprocessor.named_transformers_["encoder"]
    return [np.asarray(found, np.int64) for found in encoder.categories_]


def _lay(forest: Forest, number: int, tree: Any, known: Sequence[npt.NDArray[np.int64]]) -> None:
    nodes = tree.nodes
    places = np.arange(len(nodes))
    inner = nodes["is_leaf"] == 0
    by_code = inner & (nodes["is_categorical"] == 1)
    by_number = inner & ~by_code
    forest.value[number, places[~inner]] = nodes["value"][~inner]
    forest.column[number, places[inner]] = nodes["feature_idx"][inner]
    forest.right[number, places[inner]] = nodes["right"][inner]
    forest.threshold[number, places[by_number]] = floor32(nodes["num_threshold"][by_number])
    for place in places[by_code]:
        node = nodes[place]
        codes = known[node["feature_idx"]]
        bits = tree.raw_left_cat_bitsets[node["bitset_idx"]]
        ranks = np.arange(len(codes))
        goes_left = (bits[ranks // 32] >> (ranks % 32).astype(np.uint32)) & 1 == 1
        words = forest.left_codes.shape[2]
        # An unseen code goes where scikit-learn sends empty cells.
        is_left = np.full(words * WORD_BITS, bool(node["missing_go_to_left"]))
        is_left[codes] = goes_left
        weights = 1 << np.arange(WORD_BITS, dtype=np.int64)
        forest.left_codes[number, place] = is_left.reshape(words, WORD_BITS) @ weights


def floor32(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Round down to float32, so that no float32 changes its side of the threshold."""
    rounded = values.astype(np.float32)
    is_above = rounded.astype(np.float64) > values
    return np.where(is_above, np.nextafter(rounded, np.float32(-np.inf)), rounded).astype(np.float32)
