import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from slipway.pipeline.report.page import write_page
from slipway.pipeline.report.page_head import head
from slipway.pipeline.runs.record import NodeRecord, RunRecord, verdict_path
from slipway.pipeline.screen.wording import DONE_BEFORE

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "</style></title></textarea><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "]]><!--",
    "\x00\x1b[31mred\x07\u202e\ufeff",
    "javascript:alert(1)",
)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def tags(text: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(text)
    return parser.seen


def page_of(record: RunRecord, tmp_path: Path) -> str:
    return write_page(record, tmp_path).read_text(encoding="utf-8")


def test_a_failed_run_begins_with_what_went_wrong(report_run, tmp_path):
    text = page_of(report_run(), tmp_path)

    assert "cannot be shown" not in text
    assert "<h1>Failed: lastplain, after 1 of 2 nodes." in text
    assert text.index("What went wrong</h2>") < text.index("Key numbers</h2>") < text.index("Timeline</h2>")
    assert all(f"{part}</h2>" in text for part in ("Data", "Model", "Training", "Preflight", "Lineage"))


def edited(record: RunRecord, type_name: str, name: str, **changes: object) -> None:
    """Changes what a file of the run holds."""
    [made] = record.nodes[0].outputs[type_name]
    path = Path(made["uri"]) / name
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


def test_rows_of_a_finding_say_of_which_splits_they_are_and_who_shows_them(report_run, tmp_path):
    record = report_run()
    finding = {"what": "no label", "limit": None, "remedy": "", "stops": True, "rows_of": "all splits"}
    row = {"file": "trips.csv", "line": 3, "row": 1, "value": ""}
    findings = [
        {**finding, "feature": "fare", "splits": ["train"], "rows": [row]},
        {**finding, "feature": "fare", "splits": ["eval"], "rows": [], "rows_as": "fare (train)"},
        # As verdicts had it before they named the finding.
        {**finding, "feature": "fare", "splits": ["test"], "rows": []},
    ]
    edited(record, "schemas.DataVerdict", "verdict.json", findings=findings)

    cells = re.findall(r'<td data-label="rows">\s*(.*?)\s*</td>', page_of(record, tmp_path), re.DOTALL)

    assert [re.sub(r"\s+", " ", cell) for cell in cells] == [
        "in all splits:<br>trips.csv line 3: <code></code>",
        "in all splits: the same rows as for fare (train) above",
        "",
    ]


def test_small_slices_are_marked_and_the_caption_says_why(report_run, tmp_path):
    record = report_run()
    slices = {name: {"auc": 0.5, "example_count": rows} for name, rows in (("a=1", 7), ("a=2", 100))}
    checks = [{"metric": "auc", "required": "", "got": 0.5, "passed": True}]
    edited(record, "ModelBlessing", "verdict.json", checks=checks, slices=slices, min_slice_rows=100)

    text = page_of(record, tmp_path)

    assert "first; slices with fewer than 100 rows (<code>evaluate.min_slice_rows</code>) come last" in text
    assert text.index(">a=2</th>") < text.index(">a=1</th>")
    assert '<td class="number">7 (few)</td>' in text
    assert '<td class="number">100</td>' in text


def test_bounds_stand_small_beside_values_and_rows_beside_what_they_are_worth(report_run, tmp_path):
    record = report_run()
    record.metrics = {"auc": 0.5, "example_count": 1000.0}
    checks = [{"metric": "auc", "slice": name, "required": "", "got": 0.5, "passed": True} for name in "ab"]
    slices = {name: {"auc": 0.5, "example_count": 1000} for name in ("overall", "a", "b")}
    intervals = {"overall": {"auc": [0.45, 0.55]}, "a": {"auc": [0.4, 0.6]}}
    worth = {"overall": 312.4, "a": 12.0}
    told = {"checks": checks, "slices": slices, "intervals": intervals, "telling_rows": worth}
    edited(record, "ModelBlessing", "verdict.json", **told)

    text = page_of(record, tmp_path)

    assert '<dd class="value">0.5 <small>[0.45, 0.55]</small></dd>' in text
    assert "worth 312 by their weights" in text
    assert "in brackets: the 95% confidence interval" in text
    assert '<td data-label="got">0.5 <small>[0.4, 0.6]</small></td>' in text
    assert '<td data-label="got">0.5</td>' in text
    assert (
        '<td class="number">1000, worth 12</td><td class="number">0.5 <small>[0.4, 0.6]</small></td>' in text
    )
    assert '<td class="number">1000</td><td class="number">0.5</td>' in text


def test_the_headline_leaves_the_path_to_its_tile(report_run, tmp_path):
    record = report_run("taxi", state="complete")
    record.pushed = {"version": 7, "path": "/srv/serving/taxi/7"}

    page = write_page(record, tmp_path).read_text(encoding="utf-8")

    assert "<h1>Pushed: taxi version 7</h1>" in page
    assert page.count("/srv/serving/taxi/7") == 1


def test_what_was_done_before_a_run_was_resumed_did_not_run_in_its_time(tmp_path):
    states = [
        ("A", "complete", DONE_BEFORE),
        ("B", "complete", ""),
        ("C", "skipped", ""),
        ("D", "cached", ""),
    ]
    nodes = [NodeRecord(name, state=state, why=why) for name, state, why in states]
    record = RunRecord("run", "taxi", state="complete", nodes=nodes, wall_s=3.0, output=tmp_path)
    [wall] = [fact for fact in head(record).facts if fact.name == "wall time"]
    assert (wall.value, wall.note) == ("3.0 s", "1 ran, 1 done before, 1 cached, 1 skipped")


def test_a_killed_run_is_not_called_done(report_run, tmp_path):
    record = report_run()
    record.state = "killed"

    text = page_of(record, tmp_path)
    assert "<h1>Killed: the engine ended abruptly. 1 of 2 nodes are done" in text
    assert f"resume {record.run_id}" in text


@pytest.mark.parametrize(("blessed", "is_wrong"), [(True, False), (False, True)])
def test_why_a_model_was_blessed_is_not_what_went_wrong(tmp_path, blessed, is_wrong):
    record = RunRecord("20261129-000000-abcd", "taxi", state="stopped" if is_wrong else "interrupted")
    record.blessed, record.blessing_reasons = blessed, ["auc 0.95, meets at least 0.94"]
    record.nodes = [NodeRecord("Pusher", state="skipped", why="interrupted")]
    record.output = tmp_path
    record.folder.mkdir(parents=True)
    assert ("✗ auc 0.95" in page_of(record, tmp_path)) is is_wrong


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("state", ["failed", "complete"])
def test_text_of_others_stays_text(report_run, tmp_path, hostile, state):
    plain = [
        (tag, sorted(attributes)) for tag, attributes in tags(page_of(report_run("plain", state), tmp_path))
    ]
    found = tags(page_of(report_run(hostile, state), tmp_path))

    assert [(tag, sorted(attributes)) for tag, attributes in found] == plain
    assert all(a["href"].startswith(("#", "data:,")) for _, a in found if a.get("href"))


@pytest.mark.parametrize(("state", "colour"), [("complete", "muted"), ("stopped", "bad")])
def test_what_is_worse_is_red_only_where_the_model_was_not_accepted(report_run, tmp_path, state, colour):
    record = report_run(state=state)
    record.metrics = {"auc": 0.9}
    edited(record, "ModelBlessing", "verdict.json", baseline_metrics={"auc": 0.9004})

    note = re.findall(r'<dd class="note (\w+)">(▼ worse: .*?)</dd>', page_of(record, tmp_path))

    assert note == [(colour, "▼ worse: -0.0004 from the last blessed model")]


def test_a_name_may_break_behind_its_underscores_and_stays_text(report_run, tmp_path):
    record = report_run(state="complete")
    record.metrics = {"mean_<b>\x1b_error.of_2": 0.5}

    text = page_of(record, tmp_path)

    assert "<dt>mean_&lt;b&gt;\\x1b_<wbr>error.<wbr>of_2</dt>" in text


def test_control_characters_are_written_out(report_run, tmp_path):
    record = report_run("a\x1b[31m\u202eb")
    record.nodes[0].why = "a\x1b[31m\u202eb\udc80c"  # a file's name may hold bytes that are not text
    text = page_of(record, tmp_path)

    assert not {"\x1b", "\u202e", "\x00", "\ufeff"} & set(text)
    assert "a\\x1b[31m\\u202eb\\udc80c" in text


def test_the_page_needs_and_may_do_nothing_outside_itself(report_run, tmp_path):
    found = tags(page_of(report_run(), tmp_path))

    policy = next(a["content"] for tag, a in found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert not [a for _, a in found if "src" in a or "style" in a or any(name.startswith("on") for name in a)]


def test_every_link_leads_to_a_place_in_the_page_and_ids_are_unique(report_run, tmp_path):
    found = tags(page_of(report_run(), tmp_path))

    ids = [a["id"] for _, a in found if a.get("id")]
    targets = {a["href"][1:] for tag, a in found if tag == "a"}
    labels = {a["aria-labelledby"] for _, a in found if a.get("aria-labelledby")}
    assert len(set(ids)) == len(ids)
    assert targets | labels <= set(ids)


def test_a_damaged_file_is_reported_and_leaves_the_rest(report_run, tmp_path):
    record = report_run()
    (tmp_path / "runs" / record.run_id / "fingerprints.json").write_text("{", encoding="utf-8")

    text = page_of(record, tmp_path)

    assert "Fingerprints cannot be shown" in text
    assert "Timeline</h2>" in text


def test_counts_of_which_no_curve_can_be_made_leave_the_rest(report_run, tmp_path):
    record = report_run()
    # Changed by hand: more labels of 1 than rows.
    groups = [[0.2, 1, 0.0, 0.0, 0.2], [0.7, 0, 1.0, 1.0, 0.7], [0.9, 0, 0.0, 0.0, 0.9]]
    answers = {"candidate": {"kind": "binary", "groups": groups, "rows": 1, "not_finite": 0}}
    edited(record, "ModelBlessing", "verdict.json", answers=answers)

    text = page_of(record, tmp_path)

    assert "The model cannot be shown: ZeroDivisionError" in text
    assert "Timeline</h2>" in text


def test_a_log_outside_the_run_is_not_shown(report_run, tmp_path):
    record = report_run()
    (tmp_path / "secret.txt").write_text("do not show", encoding="utf-8")
    record.nodes[1].log = "../../secret.txt"

    assert "do not show" not in page_of(record, tmp_path)


def test_the_command_writes_the_page_without_importing_tfx_or_tensorflow(report_run, tmp_path, project):
    record = report_run("plain", "complete")
    code = (
        "import sys; from pathlib import Path; from slipway.pipeline.commands import report as pages;"
        "print(pages.report(None, Path(sys.argv[1]), index=False, path=None));"
        "print([m for m in ('tfx', 'tensorflow', 'apache_beam', 'tensorflow_data_validation', 'pandas')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == [str(tmp_path / "runs" / record.run_id / "report.html"), "[]"]


def test_the_page_is_written_whole_or_not_at_all(report_run, tmp_path, monkeypatch):
    record = report_run()
    path = write_page(record, tmp_path)
    before = path.read_bytes()

    def full(self, target):
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_page(record, tmp_path)

    assert path.read_bytes() == before
    assert list(path.parent.glob("*report.html*")) == [path]


def test_style_and_script_are_the_ones_the_policy_names(report_run, tmp_path):
    import base64
    import hashlib

    text = page_of(report_run(), tmp_path)

    for tag in ("style", "script"):
        inside = re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in text.replace("&#39;", "'")


def test_records_from_before_upstream_was_kept_are_read(tmp_path):
    record = RunRecord.from_json(
        json.loads('{"run_id": "r", "workload": "w", "nodes": [{"id": "a", "state": "cached"}]}')
    )
    (tmp_path / "runs" / "r").mkdir(parents=True)

    assert "a: cached" in page_of(record, tmp_path)


@pytest.mark.parametrize("error", [None, {"message": "x"}, {"message": "x", "hint": "y"}])
def test_a_failure_of_which_little_is_known_is_shown(tmp_path, error):
    node = NodeRecord("Mine", state="failed", error=error)
    record = RunRecord("r", "taxi", state="failed", nodes=[node], output=tmp_path)
    record.folder.mkdir(parents=True)
    text = page_of(record, tmp_path)

    assert "<h3>✗ Mine</h3>" in text
    assert ("<p>hint: y</p>" in text) == (error is not None and "hint" in error)


def test_findings_of_a_gate_of_ones_own_are_shown_as_far_as_they_are_known(tmp_path):
    node = NodeRecord("Mine", state="failed", error={"message": "x"}, is_stop=True)
    record = RunRecord("r", "taxi", state="stopped", nodes=[node], output=tmp_path)
    verdict = verdict_path(record.folder, "Mine")
    verdict.parent.mkdir(parents=True)
    verdict.write_text(json.dumps({"findings": [{"what": "9 ms is too slow"}]}))

    assert '<td data-label="finding">9 ms is too slow</td>' in page_of(record, tmp_path)
