"""Where unfinished nodes keep what they can go on with, and when they may."""

import pytest

from slipway.pipeline.errors import PipelineError
from slipway.pipeline.plan.decide import Decision
from slipway.pipeline.plan.state_folders import KeptStates, is_state_kept, key_of, states_of_step
from slipway.pipeline.runs.graph import Graph, Node

GRAPH = Graph(
    "taxi",
    (
        Node("Baseline", "Resolver", (), is_resolver=True),
        Node("Transform", "Transform", ()),
        Node("Trainer", "Trainer", ("Transform", "Baseline")),
        Node("Evaluator", "Evaluator", ("Trainer",)),
    ),
)


def may_go_on(node="Trainer", *, transform="reuse", trainer="run", is_forced=False, was_begun=False):
    decisions = {
        "Baseline": Decision("Baseline", "run", ""),
        "Transform": Decision("Transform", transform, ""),
        "Trainer": Decision("Trainer", trainer, "", is_forced=is_forced),
        "Evaluator": Decision("Evaluator", "skip", ""),
    }
    return is_state_kept(node, GRAPH, decisions, was_begun=was_begun)


def test_node_goes_on_where_all_upstream_is_kept_and_a_resolver_only_looks():
    assert may_go_on()


def test_node_begins_anew_where_something_upstream_runs_also_in_a_resumed_run():
    assert not may_go_on(transform="run")
    assert not may_go_on(transform="run", was_begun=True)


def test_forced_node_begins_anew_but_goes_on_with_what_its_own_run_has_begun():
    assert not may_go_on(is_forced=True)
    assert may_go_on(is_forced=True, was_begun=True)


def test_node_that_is_reused_needs_nothing_any_more():
    assert not may_go_on(trainer="reuse", was_begun=True)


def test_node_that_is_left_out_keeps_its_own_until_something_far_upstream_runs():
    assert may_go_on(trainer="skip")
    assert may_go_on("Evaluator", trainer="skip")
    assert not may_go_on("Evaluator", trainer="skip", transform="run")


def test_nodes_of_equal_settings_have_folders_of_their_own(tmp_path):
    states = KeptStates(tmp_path)
    one, two = (states.folder("a" * 64, name) for name in ("Sleep.1", "Sleep.2"))
    assert one != two
    assert key_of(one) == key_of(two) == "a" * 64


def test_forgetting_removes_the_one_folder_and_minds_no_absent_one(tmp_path):
    states = KeptStates(tmp_path)
    for name in ("A", "B"):
        states.folder("key", name).mkdir(parents=True)
        (states.folder("key", name) / "kept").touch()
    states.forget("key", "A")
    states.forget("key", "A")
    assert [path.name for path in states.root.iterdir()] == ["key.B"]


def test_folder_that_cannot_be_removed_is_named_and_not_gone_on_with(tmp_path):
    states = KeptStates(tmp_path)
    states.root.mkdir(parents=True)
    states.folder("key", "A").symlink_to(tmp_path)
    with pytest.raises(PipelineError, match=r"key\.A cannot be removed .*: Cannot call rmtree on a symb"):
        states.forget("key", "A")
    assert tmp_path.exists()


def states_of(output, run_id):
    return states_of_step(output, key="k", node_id="Trainer", run_id=run_id)


def test_step_beside_one_of_an_equal_run_has_a_folder_of_its_own(tmp_path):
    common = KeptStates(tmp_path).folder("k", "Trainer")
    with states_of(tmp_path, "1") as one, states_of(tmp_path, "2") as two, states_of(tmp_path, "3") as three:
        folders = [each.folder("k", "Trainer") for each in (one, two, three)]
        assert folders[0] == common
        assert len(set(folders)) == 3
        assert {key_of(folder) for folder in folders} == {"k"}
        folders[1].mkdir(parents=True)
    with states_of(tmp_path, "2") as two, states_of(tmp_path, "3") as three:
        assert two.folder("k", "Trainer") == folders[1], "it goes on with what its first attempt kept"
        assert three.folder("k", "Trainer") == common
        two.forget("k", "Trainer")
    with states_of(tmp_path, "2") as two:
        assert two.folder("k", "Trainer") == common
    assert list((tmp_path / "cache" / "state.locks").iterdir()) == []


def test_folder_of_a_killed_step_is_free_again(tmp_path):
    locks = tmp_path / "cache" / "state.locks"
    locks.mkdir(parents=True)
    (locks / KeptStates(tmp_path).folder("k", "Trainer").name).touch()
    with states_of(tmp_path, "1") as states:
        assert states.folder("k", "Trainer") == KeptStates(tmp_path).folder("k", "Trainer")


def test_step_removes_no_state_but_its_own_node_s(tmp_path):
    kept = KeptStates(tmp_path)
    for node_id in ("Trainer", "Tuner"):
        kept.folder("k", node_id).mkdir(parents=True)
    with states_of(tmp_path, "1") as states:
        for node_id in ("Trainer", "Tuner"):
            states.forget("k", node_id)
    assert [folder.name.partition(".")[2] for folder in kept.root.iterdir()] == ["Tuner"]
