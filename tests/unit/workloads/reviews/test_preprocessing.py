"""The codes of a few texts: as many in each row, whatever the text; and the label as it is."""

import pytest

from slipway.pipeline.testing.transform import transformed

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's and Beam's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


def test_words_and_pairs_have_codes_and_nothing_has_zeros():
    from workloads.reviews.preprocessing import CODES, preprocessing_fn

    texts = [["Good, GOOD film!"], ["good film"], [], [""], ["?! <>"], ["word " * 600], ["it's l\u00e4ng"]]
    labels = [1, 1, 0, 0, 0, 1, 1]
    rows = [{"text": text, "label": [label]} for text, label in zip(texts, labels, strict=True)]
    found = transformed(preprocessing_fn, rows, schema="schemas/reviews.pbtxt")
    assert [row["good"].item() for row in found] == labels
    codes = [row["words"].tolist() for row in found]
    assert {len(each) for each in codes} == {CODES}
    first, second, *empty, long, other = codes
    good, again, film, good_good, good_film = first[:5]
    assert good == again
    assert second[:3] == [good, film, good_film], (
        "words, then pairs, whatever their case and what stands between"
    )
    assert len({good, film, good_good, good_film}) == 4
    assert (first[5:], second[3:]) == ([0] * (CODES - 5), [0] * (CODES - 3))
    assert empty == [[0] * CODES] * 3, "no text, an empty one, and one without a word"
    assert len(set(long)) == 1, "a long one is cut"
    assert [code > 0 for code in other[:6]] == [True] * 5 + [False], "three words and their pairs"
