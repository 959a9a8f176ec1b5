import json
from html.parser import HTMLParser

from counted import lines_run

from slipway.pipeline.report.index import index
from slipway.pipeline.report.page import write_index, write_page
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.runs.run_target import RecordedRequest, WorkloadRun


def make(tmp_path, count: int, workload: str = "taxi"):
    history = History(tmp_path)
    for at in range(count):
        record = history.new_run(workload, run_id=f"20260101-0000{at:04}")
        record.state, record.metrics, record.wall_s = "complete", {"auc": at / count}, 10.0 + at
        record.nodes = [NodeRecord("Trainer", state="complete" if at % 2 else "cached")]
        history.save(record)
    return list(history.runs())


def test_trends_go_from_the_oldest_to_the_newest(tmp_path):
    found = index(make(tmp_path, 4), tmp_path, tmp_path / "report.html")

    auc, wall = found.trends["taxi"]
    assert (auc.name, auc.first, auc.last, auc.count) == ("auc", "0", "0.75", 4)
    assert auc.points == "0.0,40.0 66.7,26.7 133.3,13.3 200.0,0.0"
    assert (wall.name, wall.first, wall.last) == ("wall time", "11 s", "13 s")


def test_only_runs_with_a_page_are_linked_and_from_where_the_index_lies(tmp_path):
    first, second = make(tmp_path, 2)
    write_page(first, tmp_path)

    near = index([first, second], tmp_path, tmp_path / "report.html")
    far = index([first, second], tmp_path, tmp_path / "else" / "x.html")

    assert [row.run.link for row in near.rows] == [f"./runs/{first.run_id}/report.html", ""]
    assert far.rows[0].run.link == f"./../runs/{first.run_id}/report.html"


def test_a_run_that_failed_says_at_which_node_and_why(tmp_path):
    (record,) = make(tmp_path, 1)
    record.state, record.metrics = "failed", {}
    record.nodes = [
        NodeRecord("Transform", state="failed", error={"message": "no column named tips\nat line 3"})
    ]

    (row,) = index([record], tmp_path, tmp_path / "report.html").rows

    assert row.run.told == "Transform: no column named tips"

    record.nodes, record.error = [], {"message": "can't start new thread\nmore"}
    assert index([record], tmp_path, tmp_path / "report.html").rows[0].run.told == "can't start new thread"


def run(run_id, *, workload="taxi", metrics=None, **train):
    asked = RecordedRequest(
        workload=workload, target=WorkloadRun(config=json.dumps({"name": workload, "train": train}))
    )
    return RunRecord(run_id, workload, state="complete", metrics=metrics or {}, target=asked)


def table(tmp_path, *records):
    return index(records, tmp_path, tmp_path / "report.html")


def test_a_run_tells_which_keys_differ_from_the_run_before_of_its_pipeline(tmp_path):
    back = run("d", batch_size=1)
    back.rollback = {"version": 1, "instead_of": 2, "by": "ann", "reason": "bad"}
    found = table(
        tmp_path,
        run("f", batch_size=64, seed=1, model="b"),
        run("e", workload="digits", batch_size=999),
        back,
        run("c", batch_size=64, seed=1),
        run("b", batch_size=32, seed=1),
        run("a", batch_size=32, seed=1),
    )

    assert [row.changed for row in found.rows] == [("model - → b",), (), (), ("batch_size 32 → 64",), (), ()]
    assert found.rows[2].run.told == "rolled back from 2 to 1 by ann: bad"


def test_of_many_changed_keys_some_are_named(tmp_path):
    old, new = ({f"key_{at}": at + change for at in range(8)} for change in (0, 1))

    (changed, _) = (row.changed for row in table(tmp_path, run("b", **new), run("a", **old)).rows)

    assert changed[0] == "key_0 0 → 1"
    assert changed[6:] == ("and 2 more keys",)


def test_metrics_are_columns_those_that_the_most_runs_have_first(tmp_path):
    found = table(
        tmp_path,
        run("b", metrics={"example_count": 10.0, "loss": float("nan")}),
        run("a", metrics={"example_count": 10.0, "auc": 0.5, "loss": 0.25}),
    )

    assert found.metrics == ("loss", "auc")
    assert [row.metrics for row in found.rows] == [
        (("nan", ""), ("", "")),
        (("0.2500", "0.25"), ("0.5000", "0.5")),
    ]


def test_of_many_metrics_twelve_are_columns_and_the_page_says_so(tmp_path):
    record = run("a", metrics={f"m{at}": 0.5 for at in range(14)})

    found = table(tmp_path, record)
    page = write_index([record], tmp_path).read_text(encoding="utf-8")

    assert (len(found.metrics), found.other_metrics) == (12, 2)
    assert "2 more metrics: runs --json has all" in page


def trained(tmp_path, record, history: str):
    folder = tmp_path / f"model-{record.run_id}"
    folder.mkdir()
    (folder / "history.json").write_text(history, encoding="utf-8")
    made = {"model_run": [{"uri": str(folder), "type": "ModelRun", "properties": {}}]}
    record.nodes = [NodeRecord("Trainer", state="complete", outputs=made)]
    return record


def test_the_course_of_a_training_is_a_small_curve(tmp_path):
    epochs = [{"epoch": 1, "loss": 9.0, "val_loss": 0.5}, {"epoch": 2, "loss": 8.0, "val_loss": 0.25}]
    record = trained(tmp_path, run("a"), json.dumps({"epochs": epochs}))
    record.pushed = {"version": "17", "path": "/x"}

    (row,) = table(tmp_path, record).rows
    page = write_index([record], tmp_path).read_text(encoding="utf-8")

    assert row.curve.points == "0.0,0.0 200.0,40.0"
    assert "<title>val_loss over 2 epochs: from 0.5 to 0.25, between 0.25 and 0.5</title>" in page
    assert '<td data-label="pushed" data-value="17" class="whole">17</td>' in page


def test_a_damaged_history_costs_its_curve_only_and_is_reported(tmp_path):
    cut, foreign = trained(tmp_path, run("b"), '{"epochs": ['), trained(tmp_path, run("a"), '{"epochs": 7}')

    (first, second) = table(tmp_path, cut, foreign).rows

    assert first.run.told.startswith("its curve cannot be shown: ")
    assert (first.curve, second.curve, second.run.told) == (None, None, "")


def test_hostile_names_stay_text_in_the_index(tmp_path):
    class Tags(HTMLParser):
        def __init__(self):
            super().__init__()
            self.seen = []

        def handle_starttag(self, tag, attrs):
            self.seen.append(tag)

    def tags(name):
        parser = Tags()
        folder = tmp_path / str(len(name))
        folder.mkdir()
        runs = [run(f"r{at}", workload=name, metrics={name: 0.5}, **{name: f"{name}{at}"}) for at in range(3)]
        history = json.dumps({"epochs": [{name: 1.0}, {name: 2.0}]})
        trained(folder, runs[0], history).pushed = {"version": name, "path": name}
        path = write_index(runs, folder)
        parser.feed(path.read_text(encoding="utf-8"))
        return parser.seen

    assert tags('"><script>alert(1)</script>') == tags("plain")


def test_what_listing_runs_costs_grows_with_their_number(tmp_path):
    def lines(runs):
        make(tmp_path / str(runs), runs)
        found = lines_run(
            lambda: write_index(list(History(tmp_path / str(runs)).runs()), tmp_path / str(runs))
        )
        page = (tmp_path / str(runs) / "report.html").read_text(encoding="utf-8")
        assert page.count('<tr><th scope="row"') == runs
        return found

    lines(1)  # has the templates compiled
    few, many = lines(50), lines(200)
    assert many - few < 150 * 1000  # 860 lines a run measured: a second for a thousand runs
