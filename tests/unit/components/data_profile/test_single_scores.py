"""How much each column alone tells of the label."""

import numpy as np
import pytest

from slipway.components.data_profile.single_scores import single_scores

ROWS = 4000


def test_text_that_tells_nothing_of_a_number_scores_0_not_less():
    rng = np.random.default_rng(3)
    sample = {
        "code": rng.choice([f"c{n}" for n in range(500)], ROWS).astype(object),
        "y": rng.normal(size=ROWS),
    }
    assert single_scores(sample, "y") == {"code": 0.0}


@pytest.mark.parametrize("share", [0.5, 0.05, 0.002])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_that_repeats_tells_nothing_by_the_order_of_rows_sorted_by_the_label(share, sign):
    rng = np.random.default_rng(4)
    sample = {
        "label": np.sort(rng.normal(size=ROWS)),
        "flag": sign * (rng.random(ROWS) < share).astype(float),
        "gaps": np.where(rng.random(ROWS) < 0.1, np.nan, rng.random(ROWS) < share),
    }
    assert max(single_scores(sample, "label").values()) < 0.02
    assert max(single_scores({**sample, "label": -sample["label"]}, "label").values()) < 0.02


@pytest.mark.parametrize("copied", [lambda label: label, lambda label: -label, np.exp])
def test_a_copy_of_a_label_that_repeats_tells_all(copied):
    label = np.random.default_rng(5).poisson(30.0, ROWS).astype(float)
    assert single_scores({"label": label, "copy": copied(label)}, "label")["copy"] == pytest.approx(1.0)


@pytest.mark.parametrize("shares", [[0.96, 0.02, 0.02], [0.5, 0.49, 0.01]])
def test_a_copy_of_a_label_with_a_rare_class_tells_all_as_a_number_too(shares):
    label = np.random.default_rng(6).choice([0.0, 1.0, 2.0], ROWS, p=shares)
    found = single_scores({"copy": 10 * label, "text": label.astype(str).astype(object), "y": label}, "y")
    assert found == {"copy": 1, "text": 1}
