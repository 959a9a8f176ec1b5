"""The histograms of a run's features."""

from slipway.pipeline.report.feature_histograms import number_words


def test_large_numbers_close_together_are_distinguished():
    assert number_words([17_030_000_100, 17_030_000_200]) == ("17030000100", "17030000200")
    assert number_words([0.0, 1.0]) == ("0", "1")
    assert number_words([1_703_132_040]) == ("1703132040",)
