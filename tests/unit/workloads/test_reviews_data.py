"""The reviews' file: real sentences, each with what people gave it."""

import bz2
import json

import pytest

from workloads.reviews.make_data import REVIEWS_FILE


@pytest.fixture(scope="module")
def kept():
    return [json.loads(line) for line in bz2.decompress(REVIEWS_FILE.read_bytes()).splitlines()]


def test_all_pieces_of_the_package_are_there(kept):
    assert len(kept) == 10_605
    assert all(row.keys() == {"text", "rating"} for row in kept)
    assert kept[2] == {"text": "Effective but too tepid biopic", "rating": -0.6}
    assert len({row["text"] for row in kept}) > 10_600


def test_good_and_bad_are_about_as_many(kept):
    ratings = [row["rating"] for row in kept]
    assert (min(ratings), max(ratings)) == (-3.875, 3.941)
    assert sum(rating > 0 for rating in ratings) == 5_242
