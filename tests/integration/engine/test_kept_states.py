"""A node goes on with what its attempts have left, as long as nothing changes, and only until it is done."""

import pytest

from slipway.pipeline.plan.state_folders import KeptStates

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_engine")]


@pytest.fixture(scope="module")
def remembered(toy_of_module):
    """What the node has noted at each attempt, in one folder: its text, and the attempts that it knows of."""
    toy = toy_of_module
    told = {}

    def during(name, *arguments):
        before = len(toy.lines("remembered"))
        result = toy.command(*arguments)
        told[name] = toy.lines("remembered")[before:]
        return result

    run = ("run", "--pipeline", "toy_pipeline:remember")
    assert during("first run", *run).returncode == 1
    assert during("other settings", *run, "--set", "text=b").returncode == 1
    assert during("anew", *run, "--from", "Remember").returncode == 1
    assert during("resumed", "resume").returncode == 1
    told["kept"] = len(list(KeptStates(toy.output).root.iterdir()))
    toy.get_well()
    assert during("new run", *run).returncode == 0
    told["kept at the end"] = len(list(KeptStates(toy.output).root.iterdir()))
    return told


def test_retry_knows_of_the_attempt_before(remembered):
    assert remembered["first run"] == ["a 1", "a 2"]


def test_other_settings_begin_anew(remembered):
    assert remembered["other settings"] == ["b 1", "b 2"]


def test_node_that_is_asked_for_begins_anew(remembered):
    assert remembered["anew"] == ["a 1", "a 2"]


def test_resume_knows_of_the_attempts_of_its_run_also_where_that_began_anew(remembered):
    assert remembered["resumed"] == ["a 3", "a 4"]


def test_another_run_of_the_same_work_knows_of_them_too(remembered):
    assert remembered["new run"] == ["a 5"]


def test_each_setting_keeps_one_folder_until_it_is_done(remembered):
    assert (remembered["kept"], remembered["kept at the end"]) == (2, 1)


def test_node_that_was_told_to_end_by_another_starts_again_without_a_retry(toy):
    result = toy.run("leave")
    assert result.returncode == 0
    assert "starts again: ended from outside (SIGTERM)" in result.stderr
