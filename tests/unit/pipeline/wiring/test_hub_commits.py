"""Sources on the Hub are pinned before a run, and the user is told to what."""

import pytest

from slipway.components.ingest.source import SourceError
from slipway.pipeline.wiring.hub_commits import at_commits


def test_branch_becomes_the_commit_that_it_stands_for(hub, capfd):
    commit = hub.commit("o/n", {})
    found = at_commits({"all": "hf://datasets/o/n/d/*.csv"}, workload="taxi")
    assert found == {"all": f"hf://datasets/o/n@{commit}/d/*.csv"}
    assert capfd.readouterr().err == f"taxi: looks up hf://datasets/o/n@main\n  commit {commit}\n"


def test_splits_of_one_data_set_ask_once(hub):
    commit = hub.commit("o/n", {}, "v1")
    sources = {split: f"hf://datasets/o/n@v1/{split}.csv" for split in ("train", "eval")}
    assert at_commits(sources, workload="taxi") == {
        split: f"hf://datasets/o/n@{commit}/{split}.csv" for split in ("train", "eval")
    }
    assert len(hub.requests) == 1


def test_commit_and_other_places_ask_nothing_and_say_nothing(hub, capfd):
    sources = {"a": f"hf://datasets/o/n@{'0' * 40}/x.csv", "b": "gs://b/x.csv", "c": "data/x.csv"}
    assert at_commits(sources, workload="taxi") == sources
    assert (hub.requests, capfd.readouterr().err) == ([], "")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("hf://datasets/o/none/x.csv", "hf://datasets/o/none: there is no such data set"),
        ("hf://datasets/o/n@v9/x.csv", "hf://datasets/o/n has no revision 'v9'"),
        ("hf://o/n/x.csv", "must be hf://datasets/OWNER/NAME@REVISION/PATH"),
    ],
)
def test_what_is_not_there_is_an_error_of_the_source(hub, source, said):
    hub.commit("o/n", {})
    with pytest.raises(SourceError, match=said):
        at_commits({"all": source}, workload="taxi")
