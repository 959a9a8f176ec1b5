from html.parser import HTMLParser

import numpy as np
import pytest

from slipway.pipeline.commands import run_from_python
from slipway.pipeline.commands.run_from_python import RunResult
from slipway.pipeline.config import read_assignments
from slipway.pipeline.engine.tfx.arguments import arguments
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.record import NodeRecord, RunRecord


class Page(HTMLParser):
    """The text of a page, and the names of its elements."""

    def __init__(self, page):
        super().__init__()
        self.text, self.tags = "", set()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data + " "


@pytest.fixture
def result(tmp_path):
    record = RunRecord(run_id="20261121-050000-abcd", workload="taxi", started_at="2026-11-21T05:00:00Z")
    record.state, record.exit_code, record.wall_s = "failed", 1, 3.0
    node = NodeRecord(id="Trainer", type="Trainer")
    node.state, node.wall_s, node.why = "failed", 2.5, "first run"
    node.error = {"message": "<script>alert(1)</script>", "where": ""}
    record.nodes.append(node)
    return RunResult(record, tmp_path)


def test_a_notebook_shows_the_outcome_and_the_nodes(result):
    page = Page(result._repr_html_())
    assert "Failed: Trainer" in page.text
    assert "Trainer failed 2.5 s first run" in page.text


def test_what_a_run_says_stays_text_in_a_notebook(result):
    page = Page(result._repr_html_())
    assert "<script>" in page.text
    assert "script" not in page.tags


def test_a_notebook_names_the_report_where_there_is_one(result):
    assert "report.html" not in result._repr_html_()
    (result.folder / "report.html").touch()
    assert str(result.folder / "report.html") in result._repr_html_()


@pytest.mark.parametrize(
    "text", ["\U0001f600 for joy", "a\u2028b\x85", r"\ud83d\ude00", {"\U00010348": ["\xfc"]}]
)
def test_a_parameter_arrives_as_it_was_given(text):
    [read] = read_assignments([f"description={run_from_python._as_json('description', text)}"])
    assert read.layer.data["description"] == text


def test_a_parameter_that_no_workload_file_can_hold_is_refused_in_words(tmp_path):
    with pytest.raises(UsageError, match=r"parameters\['train.epochs'\] is of the type int64") as refused:
        run_from_python.run("taxi", output=tmp_path, parameters={"train.epochs": np.int64(3)})
    assert "value.item()" in refused.value.hint


def test_values_for_a_function_that_is_named_arrive_as_they_were_given(tmp_path):
    def create(
        words: list[str],
        rates: dict[str, float],
        pair: tuple[int, int],
        fast: bool,
        steps: int | None,
        few: set[str],
    ):
        """Declares what it takes."""

    given = {"words": ["a,b", "ü"], "rates": {"a": 0.5}, "pair": (1, 2), "fast": False, "steps": None}
    given["few"] = {"a", "b"}
    request = run_from_python._request("mine:create", tmp_path, given, (), {})
    assert arguments(create, name="mine:create", output=tmp_path, values=request.parameters) == given
    with pytest.raises(UsageError, match=r"parameters\['words'\] cannot be handed to the process") as refused:
        run_from_python._request("mine:create", tmp_path, {"words": [tmp_path]}, (), {})
    assert refused.value.hint == "give plain numbers and texts in it; or the function itself, not its name"
