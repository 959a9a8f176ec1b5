import re
from html.parser import HTMLParser

import pytest

from slipway.pipeline.commands import report as pages
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.report.difference_page import difference_page
from slipway.pipeline.runs.diff import compare
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord, RunRecord

HOSTILE = '"><img src=x onerror=alert(1)></td><script>alert(2)</script>\x1b[31m'


@pytest.fixture
def runs(tmp_path):
    """Two runs of a pipeline, the second with another metric, parameter and time."""

    def make(text: str = "plain") -> tuple[RunRecord, RunRecord]:
        history = History(tmp_path)
        made = []
        for value in (1, 2):
            record = history.new_run(text)
            record.nodes = [NodeRecord("Trainer" + text, state="complete", wall_s=10.0 * value)]
            record.state, record.metrics = "complete", {"auc": 0.9 + value / 100, text: float(value)}
            prints = {"Trainer" + text: Fingerprint({f"param:{text}": text * 99 + str(value)})}
            history.save_fingerprints(record.run_id, prints)
            history.save(record)
            made.append(record)
        return made[0], made[1]

    return make


def test_only_what_changed_is_reported_old_beside_new(runs, tmp_path):
    old, new = runs()
    new.metrics["same"] = old.metrics["same"] = 1.0

    page = difference_page(compare(old, new, {}, {}), old, new)

    assert [section.title for section in page.sections] == ["Metrics", "Node durations"]
    auc = page.sections[0].rows[0]
    assert (auc.name, auc.old, auc.new, auc.note, auc.is_better) == ("auc", "0.91", "0.92", "+0.01", True)
    assert page.sections[0].rows[1].is_better is None
    assert page.changes == 3


def test_more_than_a_page_holds_is_counted(runs):
    old, new = runs()
    old.metrics, new.metrics = ({str(n): n + value for n in range(300)} for value in (0.0, 1.0))

    (metrics, _) = difference_page(compare(old, new, {}, {}), old, new).sections

    assert (len(metrics.rows), metrics.left_out) == (200, 100)


def tags(text):
    found = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found.append((tag, sorted(name for name, _ in attrs)))

    Tags().feed(text)
    return found


def test_the_command_writes_a_page_in_which_text_of_others_stays_text(runs, tmp_path):
    written = []
    for text in ("plain", HOSTILE):
        old, new = runs(text)
        path = pages.diff_page(old.run_id, new.run_id, tmp_path, tmp_path / "diff.html")
        written.append(path.read_text(encoding="utf-8"))

    assert tags(written[0]) == tags(written[1])
    assert "4 changes" in written[1]
    assert "\x1b" not in written[1]
    assert "default-src &#39;none&#39;" in written[1]


def test_all_sections_are_under_one_head(runs, tmp_path):
    old, new = runs()
    path = pages.diff_page(old.run_id, new.run_id, tmp_path, tmp_path / "diff.html")
    text = path.read_text(encoding="utf-8")

    assert re.findall(r'<th scope="rowgroup"[^>]*>(.*?)</th>', text) == [
        "Metrics",
        "Parameters",
        "Node durations",
    ]
    assert text.count('<th scope="col">old</th>') == 1


def test_runs_that_are_alike_say_so(runs, tmp_path):
    old, _ = runs()
    path = pages.diff_page(old.run_id, old.run_id, tmp_path, tmp_path / "diff.html")

    assert "<h1>No difference</h1>" in path.read_text(encoding="utf-8")


def test_a_place_that_cannot_be_written_is_named(runs, tmp_path):
    old, new = runs()

    path = tmp_path / "gone" / "diff.html"
    with pytest.raises(PipelineError) as refused:
        pages.diff_page(old.run_id, new.run_id, tmp_path, path)

    assert refused.value.message == f"The page cannot be written: {path}: No such file or directory"
    assert refused.value.hint == "another file: -o FILE"
