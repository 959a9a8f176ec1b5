"""Columns that Ingest reads otherwise than they are written."""

from slipway.components.data_gate.rules.rows import QuarantineSummary, find_conversion_notes


def test_each_column_is_reported_once_and_stops_nothing():
    quarantine = QuarantineSummary(notes={"phone": "5 values with + in front", "x": "1 value read as 0"})
    found = list(find_conversion_notes(quarantine))
    assert [finding.headline for finding in found] == [
        "phone: 5 values with + in front",
        "x: 1 value read as 0",
    ]
    assert not any(finding.stops for finding in found)
