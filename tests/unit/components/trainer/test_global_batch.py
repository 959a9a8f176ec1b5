"""The rules of the global batch, by number."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.global_batch import (
    padding_advice,
    require_divisible,
    require_evaluation,
)

# Of a step that is bound by reading its weights, the padding costs no time.
IN_VAIN = "on them in vain (less of the time of a step that waits for its weights)"


@pytest.mark.parametrize(
    ("batch_size", "replicas", "hosts", "words", "hint"),
    [
        (100, 8, 1, r"train.batch_size \(100\) must be a multiple of the 8 replicas", "use 96 or 104"),
        (4, 8, 1, "must be a multiple of the 8 replicas", "use 8"),
        (9, 3, 2, "must be a multiple of 3 replicas on 2 hosts", "use 6 or 12"),
    ],
)
def test_uneven_batch_is_refused_with_the_nearest_sizes(batch_size, replicas, hosts, words, hint):
    with pytest.raises(ComponentError, match=words) as caught:
        require_divisible(batch_size, replicas=replicas, hosts=hosts)
    assert caught.value.hint == hint


def test_even_batch_passes():
    require_divisible(96, replicas=8, hosts=2)


def test_eval_split_that_makes_no_batch_is_refused_with_the_number_that_would():
    require_evaluation(8, needed=8)
    with pytest.raises(ComponentError, match=r"the eval split has 5 examples, .* at least 8"):
        require_evaluation(5, needed=8)


@pytest.mark.parametrize(
    ("batch_size", "advice"),
    [
        (1024, ""),  # 128 a core
        (64, ""),  # 8 a core
        (1000, ""),  # 125 a core: 2% in vain
        (968, "121 examples a core are padded to 128, up to 5% of the work; best is train.batch_size 1024"),
        (80, "10 examples a core are padded to 16, up to 38% of the work; best is train.batch_size 128"),
        (1040, "130 examples a core are padded to 256, up to 49% of the work; best is train.batch_size 2048"),
    ],
)
def test_padding_is_reported_in_numbers(batch_size, advice):
    found = padding_advice(batch_size, replicas=8)
    assert found.replace(f" {IN_VAIN}", "") == advice
    assert (IN_VAIN in found) is bool(advice)
