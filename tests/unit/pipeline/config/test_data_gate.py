"""The settings of the data gate."""

import pytest

from slipway.pipeline.config.data_gate import DataGateConfig, reference_folder, span_of


@pytest.mark.parametrize(
    ("reference", "span", "folder"),
    [
        ("last_blessed", None, ""),
        ("last_passed", None, ""),
        ("none", None, ""),
        ("span 12", 12, ""),
        ("span twelve", None, "span twelve"),
        ("statistics/2016", None, "statistics/2016"),
    ],
)
def test_reference_is_a_name_a_span_or_a_folder(reference, span, folder):
    config = DataGateConfig(reference=reference)
    assert (span_of(config.reference), reference_folder(config.reference)) == (span, folder)
