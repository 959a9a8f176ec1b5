"""Samples of records are spread over all of them, however many there are."""

from itertools import repeat

import pytest

from slipway.components.even_sample import even_sample, even_sample_of_files, within


def records(many):
    return (str(number).encode() for number in range(many))


@pytest.mark.parametrize("many", [0, 1, 9, 10])
def test_few_records_are_all_taken(many):
    assert even_sample(records(many), most=10) == list(records(many))


@pytest.mark.parametrize("many", [11, 19, 20, 21, 39, 40, 41, 79, 1000, 1023])
def test_sample_is_spread_over_all_records_in_their_order(many):
    found = [int(record) for record in even_sample(records(many), most=10)]
    assert len(found) == 10
    assert found[0] == 0
    gaps = [after - before for before, after in zip(found, [*found[1:], many], strict=True)]
    assert all(0 < gap <= 2.1 * many / 10 for gap in gaps), "and the last one is near the end"


def test_rows_in_the_order_of_their_classes_are_sampled_from_each_class():
    ordered = [b"0"] * 700 + [b"1"] * 300
    assert even_sample(ordered, most=100).count(b"1") == pytest.approx(30, abs=8)


def test_sample_of_files_reaches_the_last_rows_of_each():
    found = even_sample_of_files(["a", "b"], lambda file: [file.encode()] * 1000, most=10, most_bytes=1 << 20)
    assert found == [b"a"] * 5 + [b"b"] * 5
    ordered = [b"early"] * 5000 + [b"late"] * 400
    assert b"late" in even_sample_of_files(["a"], lambda _: ordered, most=64, most_bytes=1 << 20)


def test_sample_of_files_reads_no_more_than_its_bytes_and_no_more_files_than_rows():
    read = []

    def endless(file):
        for _ in range(10_000):
            read.append(file)
            yield file.encode() * 50

    names = [f"{number:02}" for number in range(40)]
    found = even_sample_of_files(names, endless, most=20, most_bytes=20 * 300)
    assert (len(found), found[0][:2], found[-1][:2]) == (20, b"00", b"36")
    assert sorted(read) == sorted(names[::2] * 3)


@pytest.mark.parametrize("files", [[], ["empty"]])
def test_no_files_and_empty_ones_give_no_sample(files):
    assert even_sample_of_files(files, lambda _: [], most=3, most_bytes=10) == []


def test_records_are_taken_until_they_fill_the_room():
    assert len(list(within(repeat(bytes(1000)), 10_000))) == 10
    assert len(list(within(repeat(bytes(1000)), 10_001))) == 11


def test_one_record_is_taken_however_large():
    assert list(within([b"large", b"other"], 1)) == [b"large"]
    assert list(within([], 1)) == []
