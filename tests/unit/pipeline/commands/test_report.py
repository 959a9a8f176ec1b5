"""`report`: the pages that it writes, and where."""

import pytest

from slipway.pipeline.commands import report as pages
from slipway.pipeline.errors import PipelineError, UsageError


def test_a_place_that_cannot_be_written_is_named_with_a_remedy(report_run, tmp_path):
    report_run()

    with pytest.raises(PipelineError, match=r"gone/.*x\.html.*\n?.*-o FILE"):
        pages.report(None, tmp_path, index=False, path=tmp_path / "gone" / "x.html")


def test_the_index_is_of_all_runs_and_takes_no_name(report_run, tmp_path):
    record = report_run()

    with pytest.raises(UsageError, match="name none"):
        pages.report(record.run_id, tmp_path, index=True, path=None)
    assert pages.report(None, tmp_path, index=True, path=None) == tmp_path / "report.html"
