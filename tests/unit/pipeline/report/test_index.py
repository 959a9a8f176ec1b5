from html.parser import HTMLParser

from counted import lines_run

from slipway.pipeline.report.index import index, trend
from slipway.pipeline.report.page import write_index, write_page
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord


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
    assert (auc.name, auc.first, auc.last, auc.runs) == ("auc", "0", "0.75", 4)
    assert auc.points == "0.0,40.0 66.7,26.7 133.3,13.3 200.0,0.0"
    assert (wall.name, wall.first, wall.last) == ("wall time", "11 s", "13 s")


def test_one_value_is_no_trend():
    assert trend("auc", [0.5]) is None
    assert trend("auc", [0.5, float("nan")]) is None


def test_only_runs_with_a_page_are_linked_and_from_where_the_index_lies(tmp_path):
    first, second = make(tmp_path, 2)
    write_page(first, tmp_path)

    near = index([first, second], tmp_path, tmp_path / "report.html")
    far = index([first, second], tmp_path, tmp_path / "else" / "x.html")

    assert [row.link for row in near.rows] == [f"./runs/{first.run_id}/report.html", ""]
    assert far.rows[0].link == f"./../runs/{first.run_id}/report.html"


def test_a_run_that_failed_says_at_which_node_and_why(tmp_path):
    (record,) = make(tmp_path, 1)
    record.state, record.metrics = "failed", {}
    record.nodes = [
        NodeRecord("Transform", state="failed", error={"message": "no column named tips\nat line 3"})
    ]

    (row,) = index([record], tmp_path, tmp_path / "report.html").rows

    assert row.told == "Transform: no column named tips"


def test_hostile_names_stay_text_in_the_index(tmp_path):
    class Tags(HTMLParser):
        def __init__(self):
            super().__init__()
            self.seen = []

        def handle_starttag(self, tag, attrs):
            self.seen.append(tag)

    def tags(workload):
        parser = Tags()
        folder = tmp_path / str(len(workload))
        path = write_index(make(folder, 3, workload), folder)
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
        assert page.count('<tr><th scope="row">') == runs
        return found

    lines(1)  # has the templates compiled
    few, many = lines(50), lines(200)
    assert many - few < 150 * 1000  # 860 lines a run measured: a second for a thousand runs
