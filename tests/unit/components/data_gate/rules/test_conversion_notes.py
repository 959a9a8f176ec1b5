"""Columns that Ingest reads otherwise than they are written."""

from slipway.components.data_gate.finding import Finding
from slipway.components.data_gate.rules.rows import QuarantineSummary, find_conversion_notes


def test_each_column_is_reported_once_and_stops_nothing():
    quarantine = QuarantineSummary(notes={"phone": "5 values with + in front", "x": "1 value read as 0"})
    assert list(find_conversion_notes(quarantine)) == [
        Finding(
            rule="read otherwise", feature="phone", splits=(), what="5 values with + in front", stops=False
        ),
        Finding(rule="read otherwise", feature="x", splits=(), what="1 value read as 0", stops=False),
    ]
