"""Columns that Ingest reads otherwise than they are written."""

from slipway.components.data_gate.rules.rows import BadRows, find_read_otherwise


def test_each_column_is_told_once_and_stops_nothing():
    bad = BadRows(notes={"phone": "5 values with + in front", "x": "1 value read as 0"})
    found = list(find_read_otherwise(bad))
    assert [finding.headline for finding in found] == [
        "phone: 5 values with + in front",
        "x: 1 value read as 0",
    ]
    assert not any(finding.stops for finding in found)
