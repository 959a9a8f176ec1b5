"""Opens the pages in a real Chromium, where there is one: widths, console, requests, sorting, links, axe."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.report.difference_page import difference_page
from slipway.pipeline.report.page import write, write_index, write_page
from slipway.pipeline.runs.diff import compare
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.runs.run_target import RecordedRequest, WorkloadRun

pytestmark = pytest.mark.external

LONG = "a_name_that_never_ends_" * 12
POLICY = r'<meta http-equiv="Content-Security-Policy"[^>]*>'
HOSTILE = "</script><img src=http://127.0.0.1:9/x onerror=\"console.log('run')\">"


@dataclass(frozen=True)
class Visit:
    """The result of a visit.

    Attributes:
        found: the page's `width` and the `room` for it in px, what it `asked` for, and what the script found.
        console: the lines of the console, where the browser also tells of what the page's policy forbids.
    """

    found: dict[str, Any]
    console: list[str]


@pytest.fixture
def chromium():
    """Runs the browser without a window and without a network; its profile lies in the folder."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")

    def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--disable-background-networking", "--disable-component-update",
                "--disable-sync", "--allow-file-access-from-files", "--enable-logging=stderr",
                f"--user-data-dir={folder / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND", *arguments,
            ],
            env={**os.environ, "HOME": str(folder)},
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )  # fmt: skip

    return call


@pytest.fixture
def visit(chromium, tmp_path_factory):
    """Opens a page in a frame of a given width and lets a script look at it."""

    def open_page(page: Path, *, width_px: int, look: str = "{}", dark: bool = False) -> Visit:
        folder = tmp_path_factory.mktemp("chromium")
        options = ["--blink-settings=preferredColorScheme=0"] if dark else []
        frame = folder / "frame.html"
        frame.write_text(
            f"""<iframe id=f width={width_px} height=700 src="{page.as_uri()}"></iframe><pre id=out></pre>
<script>addEventListener("load", async () => {{
  const frame = document.getElementById("f"), page = frame.contentDocument, root = page.documentElement;
  const found = {{width: root.scrollWidth, room: root.clientWidth, ...(await ({look}))}};
  found.asked = frame.contentWindow.performance.getEntriesByType("resource").map(entry => entry.name);
  document.getElementById("out").textContent = JSON.stringify(found);
}})</script>""",
            encoding="utf-8",
        )
        done = chromium(folder, *options, "--virtual-time-budget=3000", "--dump-dom", frame.as_uri())
        out = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)
        assert out, done.stdout[:2000] + done.stderr[-2000:]
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return Visit(json.loads(unescape(out[1])), console)

    return open_page


def make_run(output: Path, name: str) -> RunRecord:
    """A failed run with long and hostile names in it."""
    history = History(output)
    record = history.new_run(name)
    made = [{"uri": f"/{LONG}", "type": name, "properties": {name: LONG}}]
    record.nodes = [
        NodeRecord("A", state="complete", started_s=0.0, wall_s=2.0, outputs={"made": made}, why=name),
        NodeRecord("B", state="complete", started_s=0.5, wall_s=7.0, upstream=["A"], why=LONG),
        NodeRecord(name, state="failed", started_s=8.0, wall_s=1.0, upstream=["A", "B"], log="logs/x.log"),
    ]
    record.nodes[2].error = {"message": name, "hint": LONG, "where": name}
    record.state, record.metrics = "failed", {name: 0.5}
    (history.folder(record.run_id) / "logs" / "x.log").write_text(f"{LONG}\n{name}\n" * 20, encoding="utf-8")
    history.save_fingerprints(record.run_id, {"A": Fingerprint({f"param:{name}": LONG, "stack:tfx": "1"})})
    history.save(record)
    return record


@pytest.mark.slow
@pytest.mark.parametrize("width_px", [320, 1280])
def test_a_page_full_of_hostile_and_long_names_keeps_its_width_and_to_itself(visit, tmp_path, width_px):
    page = write_page(make_run(tmp_path, HOSTILE), tmp_path)

    everything = (
        "(page.querySelectorAll('details').forEach(d => { d.open = true; }), {width: root.scrollWidth})"
    )
    seen = visit(page, width_px=width_px, look=everything)

    assert seen.found["width"] <= seen.found["room"]
    assert seen.console == []
    assert [address for address in seen.found["asked"] if not address.startswith("data:")] == []


# The words within which a line ends, but in paths, each with what is on either side; the width with all open.
BROKEN = """(() => {
  for (const part of page.querySelectorAll("details")) part.open = true;
  const walk = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT), range = page.createRange();
  const wordAt = (words, at) => words.slice(words.lastIndexOf(" ", at) + 1).split(" ")[0];
  const broken = [];
  for (let text = walk.nextNode(); text; text = walk.nextNode()) {
    if (text.parentElement.closest("pre, script")) continue;
    for (const {index: at} of text.data.matchAll(/[a-z](?=[a-z])/g)) {
      if (wordAt(text.data, at).includes("/")) continue;
      range.setStart(text, at); range.setEnd(text, at + 2);
      if (range.getClientRects().length > 1)
        broken.push(text.data.slice(0, at + 1) + "/" + text.data.slice(at + 1));
    }
  }
  return {broken, width: root.scrollWidth};
})()"""


@pytest.mark.slow
@pytest.mark.parametrize("width_px", [420, 1400])
def test_a_long_name_breaks_between_its_words_and_not_before_its_last_letters(
    visit, report_run, tmp_path, width_px
):
    record = report_run("root_mean_squared_error", "complete")
    pages = [write_page(record, tmp_path), write_index([record, record], tmp_path)]

    seen = [visit(page, width_px=width_px, look=BROKEN).found for page in pages]

    assert [each["broken"] for each in seen] == [[], []]
    assert all(each["width"] <= each["room"] for each in seen)


@pytest.mark.slow
@pytest.mark.parametrize("width_px", [320, 1400])
@pytest.mark.parametrize("name", ["yes", "electroencephalographically"])
def test_the_confusion_matrix_of_two_classes_stays_in_its_tile(visit, report_run, tmp_path, name, width_px):
    page = write_page(report_run(name, "complete"), tmp_path)

    look = """({out: [...page.querySelectorAll(".tiles table")].map(table =>
      table.getBoundingClientRect().right - table.parentElement.getBoundingClientRect().right)})"""
    (out,) = visit(page, width_px=width_px, look=look).found["out"]

    assert out <= 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["index", "difference"])
def test_ids_times_and_states_of_runs_are_in_one_line_each_on_a_wide_screen(
    visit, report_run, tmp_path, kind
):
    old, new = report_run("old", "failed"), report_run("new", "complete")
    for record in (old, new):
        record.started_at, record.wall_s = "2026-11-30T17:32:08+00:00", 4000.0
        record.metrics = {f"output_{at}/root_mean_squared_error": 0.5 for at in range(12)}
    page = page_of_runs(kind, old, new, tmp_path)

    look = """(() => {
      const range = page.createRange(), lines = {};
      for (const cell of page.querySelector("table").tBodies[0].rows[0].cells) {
        range.selectNodeContents(cell);
        const name = cell.dataset.label ?? "run";
        lines[name] = new Set(Array.from(range.getClientRects(), line => Math.round(line.bottom))).size;
      }
      return {lines};
    })()"""
    lines = visit(page, width_px=1400, look=look).found["lines"]

    assert {name: lines[name] for name in ("run", "state", "started", "duration")} == {
        "run": 1,
        "state": 1,
        "started": 1,
        "duration": 1,
    }


def page_of_runs(kind: str, old: RunRecord, new: RunRecord, folder: Path) -> Path:
    """The table of all runs, or the page of what differs between two."""
    if kind == "index":
        return write_index([new, old], folder)
    found = difference_page(compare(old, new, {}, {}), old, new)
    return write("difference.html.j2", found, folder / "diff.html")


@pytest.mark.slow
@pytest.mark.parametrize(("width_px", "beside"), [(420, False), (1400, True)])
def test_the_timeline_is_whole_and_the_nodes_are_beside_the_graph_where_there_is_room(
    visit, tmp_path, width_px, beside
):
    record = make_run(tmp_path, "a_node_whose_name_is_longer_than_its_bar")
    for node in record.nodes:
        node.peak_bytes = 123_456_789_012
    page = write_page(record, tmp_path)

    look = """(() => {
      const drawn = page.querySelector("svg.times"), box = drawn.getBoundingClientRect();
      const parts = [...drawn.querySelectorAll("text, rect")].map(part => part.getBoundingClientRect());
      const [graph, nodes] = Array.from(
        page.querySelector(".beside").children, part => part.getBoundingClientRect());
      return {
        parts: parts.length, drawn: [box.left, box.right],
        cut: parts.filter(part => part.left < box.left - 1 || part.right > box.right + 1
          || part.bottom > box.bottom + 1).length,
        beside: graph.right < nodes.left && nodes.top < graph.bottom,
      };
    })()"""
    found = visit(page, width_px=width_px, look=look).found

    assert (found["parts"], found["cut"]) == (8, 0)
    assert 0 <= found["drawn"][0] < found["drawn"][1] <= found["room"]
    assert found["beside"] == beside


@pytest.mark.slow
def test_the_index_keeps_its_width_too(visit, tmp_path):
    record = make_run(tmp_path, HOSTILE)
    write_page(record, tmp_path)
    page = write_index([record, record], tmp_path)

    seen = visit(page, width_px=320)

    assert seen.found["width"] <= seen.found["room"]
    assert seen.console == []


@pytest.mark.slow
def test_a_header_sorts_its_table_and_a_box_opens_its_node(visit, tmp_path):
    page = write_page(make_run(tmp_path, "plain"), tmp_path)

    look = """(() => {
      const table = page.querySelector("table.sortable"), buttons = table.querySelectorAll("th button");
      const first = () => table.tBodies[0].rows[0].cells[0].textContent;
      const seen = {};
      buttons[2].click(); seen.up = first(); seen.sorted = buttons[2].closest("th").getAttribute("aria-sort");
      buttons[2].click(); seen.down = first();
      const box = page.querySelector("svg a"), part = page.getElementById(box.getAttribute("href").slice(1));
      seen.before = part.closest("details").open;
      frame.contentWindow.location.hash = box.getAttribute("href");
      frame.contentWindow.dispatchEvent(new HashChangeEvent("hashchange"));
      seen.after = part.closest("details").open;
      return seen;
    })()"""
    found = visit(page, width_px=800, look=look).found

    assert (found["up"], found["down"], found["sorted"]) == ("plain", "B", "ascending")
    assert (found["before"], found["after"]) == (False, True)


@pytest.mark.slow
def test_the_table_of_all_runs_is_sorted_by_any_column_with_what_is_empty_last(visit, tmp_path):
    runs = [
        RunRecord("20260101-000003-a", "b", metrics={"auc": 0.9}, started_at="2026-01-01T00:03:00+00:00"),
        RunRecord("20260101-000002-b", "a", started_at="2026-01-01T00:02:00+00:00"),
        RunRecord("20260101-000001-c", "b", metrics={"auc": 0.10}, started_at="2026-01-01T00:01:00+00:00"),
    ]
    look = """(() => {
      const table = page.querySelector("table.sortable"), seen = {};
      for (const button of table.querySelectorAll("th button")) {
        const rows = () => Array.from(table.tBodies[0].rows);
        const order = () => rows().map(row => row.cells[0].textContent.at(-1)).join("");
        const orders = [];
        for (const turn of [1, 2]) { button.focus(); button.click(); orders.push(order()); }
        seen[button.textContent] = [...orders, page.activeElement === button];
      }
      return seen;
    })()"""

    found = visit(write_index(runs, tmp_path), width_px=1000, look=look).found

    assert found["run"] == found["started"] == ["cba", "abc", True]
    assert found["auc"] == ["cab", "acb", True]
    assert found["pipeline"] == ["bac", "acb", True]


@pytest.mark.slow
@pytest.mark.parametrize("width_px", [320, 1000])
def test_the_table_of_all_runs_shows_the_rows_that_hold_every_word_that_is_typed(visit, tmp_path, width_px):
    runs = [
        RunRecord("20260101-000003-a", "taxi", state="complete", started_at="2026-01-01T00:03:00+00:00"),
        RunRecord("20260101-000002-b", "digits", state="failed", started_at="2026-01-01T00:02:00+00:00"),
        RunRecord("20260101-000001-c", "taxi", state="failed", started_at="2026-01-01T00:01:00+00:00"),
    ]
    look = """(() => {
      const input = page.querySelector("input"), rows = [...page.querySelector("table").tBodies[0].rows];
      const seen = [];
      for (const words of ["TAXI", "fail  taxi", "none", " "]) {
        input.value = words; input.dispatchEvent(new Event("input"));
        const shown = rows.filter(row => row.checkVisibility()).map(row => row.cells[0].textContent.at(-1));
        seen.push([shown.join(""), page.querySelector("output").textContent]);
      }
      return {seen, name: input.labels[0].textContent, width: root.scrollWidth};
    })()"""

    seen = visit(write_index(runs, tmp_path), width_px=width_px, look=look)

    assert seen.found["seen"] == [["ac", "2 of 3"], ["c", "1 of 3"], ["", "0 of 3"], ["abc", "3 of 3"]]
    assert seen.found["name"].startswith("Filter")
    assert seen.found["width"] <= seen.found["room"]
    assert seen.console == []


@pytest.fixture
def violations(visit, tmp_path):
    """The violations that axe-core, an accessibility checker, finds on a page: rule and elements.

    It needs a script of its own in the page, so it is shown a copy without the policy.
    """

    def check(page: Path, *, width_px: int = 1280, dark: bool = False) -> list[str]:
        axe = Path(importlib.util.find_spec("axe_core_python").origin).with_name("axe.min.js")
        text = page.read_text(encoding="utf-8")
        assert len(re.findall(POLICY, text)) == 1
        copy = tmp_path / "checked.html"
        script = f"<script>{axe.read_text(encoding='utf-8')}</script>"
        copy.write_text(re.sub(POLICY, "", text).replace("</body>", f"{script}</body>"), encoding="utf-8")
        look = """(async () => {
          for (const part of page.querySelectorAll("details")) part.open = true;
          const told = await frame.contentWindow.axe.run();
          const seen = getComputedStyle(page.body).backgroundColor;
          const parts = each => each.nodes.map(node => node.target + " " + node.failureSummary);
          return {ground: seen, passes: told.passes.map(each => each.id),
                  against: told.violations.map(each => each.id + ": " + parts(each).join("; "))};
        })()"""
        found = visit(copy, width_px=width_px, look=look, dark=dark).found
        assert {"color-contrast", "document-title", "html-has-lang"} <= set(found["passes"])
        assert found["ground"] == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
        return found["against"]

    return check


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width_px", [320, 1280])
def test_a_checker_of_accessibility_has_nothing_against_the_page_of_a_run(
    violations, report_run, tmp_path, width_px, dark
):
    page = write_page(report_run(), tmp_path)

    assert violations(page, width_px=width_px, dark=dark) == []


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nor_against_the_index_and_the_page_of_a_difference(violations, report_run, tmp_path, dark):
    old, new = report_run("old", "complete"), report_run("new", "complete")
    new.workload, new.metrics = old.workload, {"auc": 0.5, LONG: 0.25}
    new.target = RecordedRequest(
        workload="w", target=WorkloadRun(config=json.dumps({"train": {"seed": 2, LONG: LONG}}))
    )
    write_page(new, tmp_path)
    pages = [page_of_runs(kind, old, new, tmp_path) for kind in ("index", "difference")]

    assert [violations(page, dark=dark) for page in pages] == [[], []]


@pytest.mark.slow
def test_nor_against_a_matrix_of_many_classes_with_long_names(violations, visit, report_run, tmp_path):
    page = write_page(with_many_classes(report_run(state="complete")), tmp_path)

    assert violations(page, width_px=320) == []
    found = visit(page, width_px=320).found
    assert found["width"] <= found["room"]


@pytest.mark.slow
def test_the_checker_would_tell_of_a_faint_text_and_a_button_without_a_name(violations, report_run, tmp_path):
    page = write_page(report_run(), tmp_path)
    text = page.read_text(encoding="utf-8")
    faint = "<style>.faint { color: #eee }</style><p class=faint>faint</p><button></button>"
    page.write_text(text.replace('<main id="main">', f'<main id="main">{faint}'), encoding="utf-8")

    rules = {told.partition(":")[0] for told in violations(page)}

    assert rules == {"color-contrast", "button-name"}


def with_many_classes(record: RunRecord) -> RunRecord:
    """The same with a model of twenty classes whose names are long, and trials of many hyperparameters."""
    names = [f"class {number} of a name_that_goes_on_and_on" for number in range(20)]
    config = json.dumps({"transform": {"classes": names}})
    record.target = RecordedRequest(target=WorkloadRun(config=config))
    [made] = record.nodes[0].outputs["ModelBlessing"]
    verdict, trials = (Path(made["uri"]) / name for name in ("verdict.json", "tuner_results.json"))
    cells = [[label, answer, 1234] for label in range(20) for answer in range(20)]
    counted = {"kind": "classes", "cells": cells, "rows": 400, "not_finite": 0}
    held = {**json.loads(verdict.read_text(encoding="utf-8")), "answers": {"candidate": counted}}
    verdict.write_text(json.dumps(held), encoding="utf-8")
    trials.write_text(json.dumps([{f"hyperparameter_{n}": n / 7 for n in range(24)}]), encoding="utf-8")
    return record


# A4 between the margins of the print stylesheet.
PAPER_PX = 703


def on_paper(page: Path) -> Path:
    """Has a page's rules for print hold on the screen: nothing in here lays out a real print."""
    text = re.sub(POLICY, "", page.read_text(encoding="utf-8"))
    text = text.replace("@media screen", "@media not all").replace("@media print", "@media all")
    page.write_text(text, encoding="utf-8")
    return page


@pytest.mark.slow
def test_on_paper_the_table_of_all_runs_is_not_cut_however_many_metrics_it_has(visit, report_run, tmp_path):
    record = report_run("plain", "complete")
    record.metrics = {f"output_{at}/binary_accuracy": 0.5 for at in range(20)}
    page = on_paper(write_index([record, record], tmp_path))

    look = """({
      cut: [...page.querySelectorAll("table, svg, .wide")].filter(each =>
        each.getBoundingClientRect().right > root.clientWidth
        || each.scrollWidth > each.clientWidth + 1).length,
      row: page.querySelector("tbody tr").innerText,
      empty: [...page.querySelectorAll("td:empty")].filter(each => each.checkVisibility()).length,
    })"""
    found = visit(page, width_px=PAPER_PX, look=look).found

    assert found["cut"] == 0
    assert found["row"].startswith(record.run_id)
    assert found["empty"] == 0


@pytest.mark.slow
def test_on_paper_no_table_is_cut_and_nothing_is_left_that_only_a_screen_can_use(visit, report_run, tmp_path):
    page = on_paper(write_page(with_many_classes(report_run()), tmp_path))

    look = """(() => {
      const styled = name => getComputedStyle(page.querySelector(name));
      const seen = {}, parts = [...page.querySelectorAll("details")];
      frame.contentWindow.dispatchEvent(new Event("beforeprint"));
      const all = [...page.querySelectorAll("table, svg, pre, .wide")].filter(each => each.checkVisibility());
      seen.parts = all.length;
      seen.cut = all.filter(each => each.getBoundingClientRect().right > root.clientWidth
        || each.scrollWidth > each.clientWidth + 1).map(each => each.tagName + " " + each.textContent.trim());
      seen.nav = styled("nav").display;
      seen.ground = styled("body").backgroundColor;
      seen.link = styled("th button").color === styled("body").color;
      seen.button = styled("th button").display;
      seen.closed = parts.filter(each => !each.open && each.checkVisibility()).map(each => each.className);
      seen.paper = parts.filter(each => each.classList.contains("paper") && !each.open).length;
      frame.contentWindow.dispatchEvent(new Event("afterprint"));
      seen.after = parts.filter(each => each.classList.contains("paper") && each.open).length;
      return seen;
    })()"""
    found = visit(page, width_px=PAPER_PX, look=look, dark=True).found

    assert found["cut"] == []
    assert found["parts"] > 10
    assert (found["nav"], found["ground"], found["link"]) == ("none", "rgb(255, 255, 255)", True)
    # Chromium repeats no head that holds a button's box on the next page.
    assert found["button"] == "contents"
    # A node keeps its line; what else is closed is left out, but for what stands nowhere else on the page.
    assert set(found["closed"]) == {"node"}
    assert (found["paper"], found["after"]) == (0, 0)


@pytest.mark.slow
def test_a_log_that_was_not_opened_is_not_printed(chromium, report_run, tmp_path):
    def pages(name: str) -> int:
        (tmp_path / name).mkdir()
        written = write_page(record, tmp_path, tmp_path / name / "page.html")
        chromium(tmp_path / name, f"--print-to-pdf={tmp_path / name / 'page.pdf'}", written.as_uri())
        return len(re.findall(rb"/Type /Page\b", (tmp_path / name / "page.pdf").read_bytes()))

    record = report_run(state="complete")
    log = tmp_path / "runs" / record.run_id / "logs" / "last.log"
    log.write_text("a line\n", encoding="utf-8")
    short = pages("short")
    log.write_text("x\n" * 1400, encoding="utf-8")

    assert 1 <= pages("long") == short


@pytest.mark.slow
def test_the_browser_would_tell_of_an_error_a_request_and_a_wide_page(visit, tmp_path):
    page = tmp_path / "bad.html"
    page.write_text(
        "<img src=http://127.0.0.1:9/x><div style='width:900px'>x</div><script>boom()</script>",
        encoding="utf-8",
    )

    seen = visit(page, width_px=320)

    assert seen.found["width"] > seen.found["room"]
    assert any("boom" in line for line in seen.console)
    assert seen.found["asked"] == ["http://127.0.0.1:9/x"]
