"""Tests of which answers to logged rows can be compared."""

import numpy as np
import pytest

from slipway.pipeline.commands.logged_answers import check_widths
from slipway.pipeline.errors import UsageError


def test_answers_of_one_width_or_none_are_compared():
    check_widths([], 3)
    check_widths([np.zeros((2, 4)), np.zeros((5, 4))], 3)


def test_answers_whose_width_changes_between_batches_are_refused_in_words():
    """Sequences of another length in each batch; each batch by itself is even."""
    with pytest.raises(UsageError, match=r"^Version 3 does not answer .* number of numbers: 2 or 4, so"):
        check_widths([np.zeros((2, 4)), np.zeros((5, 2))], 3)
