"""The statistics of all rows among those of slices."""

import pytest
from tensorflow_metadata.proto.v0 import statistics_pb2

from slipway.components.data_gate.protos import split_statistics
from slipway.components.data_profile.all_rows import ALL_ROWS, of_all_rows
from slipway.components.errors import ComponentError


def written(**rows):
    found = statistics_pb2.DatasetFeatureStatisticsList()
    for name, count in rows.items():
        found.datasets.add(name=name.replace("_", " "), num_examples=count)
    return found.SerializeToString()


def test_they_are_found_by_their_name_wherever_they_stand():
    content = written(**{"sex_f": 3, ALL_ROWS.replace(" ", "_"): 7, "sex_m": 4})
    assert of_all_rows(content).num_examples == 7
    assert split_statistics(content).rows == 7


def test_without_slices_they_have_any_name():
    assert of_all_rows(written(**{"": 5})).num_examples == 5
    assert of_all_rows(written(mine=6)).num_examples == 6


@pytest.mark.parametrize("names", [(), ("a", "b")])
def test_slices_alone_are_refused(names):
    with pytest.raises(ComponentError, match="slices, and not those of all rows"):
        of_all_rows(written(**dict.fromkeys(names, 1)))
