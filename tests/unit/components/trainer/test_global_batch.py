"""The rules of the global batch, by number."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.global_batch import (
    padding_advice,
    require_divisible,
    require_evaluation,
)


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
        (968, "121 examples a core are padded to 128, 5% in vain; best is train.batch_size 1024"),
        (80, "10 examples a core are padded to 16, 38% in vain; best is train.batch_size 128"),
        (1040, "130 examples a core are padded to 256, 49% in vain; best is train.batch_size 2048"),
    ],
)
def test_padding_is_reported_in_numbers(batch_size, advice):
    assert padding_advice(batch_size, replicas=8) == advice
