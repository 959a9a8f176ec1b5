"""Which folders below artifacts/ may go: only those of executions, and none with anything that is needed."""

import os

import pytest

from slipway.pipeline.commands.gc.unneeded_artifacts import ArtifactFolders, children

LONG_AGO, SINCE, JUST_NOW = 1_000.0, 2_000.0, 3_000.0
NODES = {"1": {"Trainer"}, "2": {"Trainer"}, "3": {"steps/Deep"}}


@pytest.fixture
def unneeded(tmp_path):
    """What may go below `tmp_path`, relative to it; needed and dropped folders are named so, too."""

    def call(*, needed=(), dropped=(), runs=(), since=SINCE):
        folders = ArtifactFolders(
            needed={(tmp_path / each).resolve() for each in needed},
            dropped={tmp_path / each for each in dropped},
            nodes=NODES,
            runs=set(runs),
            since=since,
        )
        return [str(path.relative_to(tmp_path)) for path in folders.unneeded(tmp_path)]

    return call


@pytest.fixture
def made(tmp_path):
    """Makes a file in each folder; all of them were last written long ago, or when it is said."""

    def make(*folders, at=LONG_AGO):
        for each in folders:
            (tmp_path / each).mkdir(parents=True)
            (tmp_path / each / "data").write_bytes(b"x")
        for path in (tmp_path, *tmp_path.rglob("*")):
            if path.stat().st_mtime > JUST_NOW:  # not yet set
                os.utime(path, (at, at))

    return make


def test_folder_of_an_execution_that_a_dropped_run_names_goes_whenever_it_was_written(unneeded, made):
    made("taxi/Trainer/model/1", "taxi/Trainer/model/2", at=JUST_NOW)
    assert unneeded(dropped=["taxi/Trainer/model/1"]) == ["taxi/Trainer/model/1"]


def test_folder_of_an_execution_goes_as_a_whole_when_a_file_in_it_is_what_was_dropped(unneeded, made):
    made("taxi/Trainer/model/1/one", "taxi/Trainer/model/1/other", at=JUST_NOW)
    assert unneeded(dropped=["taxi/Trainer/model/1/one"]) == ["taxi/Trainer/model/1"]


@pytest.mark.parametrize(("at", "goes"), [(LONG_AGO, True), (SINCE, False), (JUST_NOW, False)])
def test_folder_that_no_record_names_goes_if_no_run_can_still_go_on_with_it(unneeded, made, at, goes):
    made("taxi/Trainer/model/1", at=at)
    assert unneeded() == (["taxi/Trainer/model/1"] if goes else [])


def test_one_file_written_since_then_keeps_the_folder(unneeded, made, tmp_path):
    made("taxi/Trainer/model/1/checkpoints")
    written = tmp_path / "taxi/Trainer/model/1/checkpoints/data"
    os.utime(written, (JUST_NOW, JUST_NOW))
    assert unneeded() == []


@pytest.mark.parametrize(
    "needed", ["taxi/Trainer/model/1", "taxi/Trainer/model/1/Format-Serving", "taxi/Trainer", ".", ".."]
)
def test_what_is_needed_stays_with_all_above_and_in_it(unneeded, made, needed):
    made("taxi/Trainer/model/1/Format-Serving")
    assert unneeded(needed=[needed], dropped=["taxi/Trainer/model/1"]) == []


def test_what_lies_beside_something_needed_goes(unneeded, made):
    made("taxi/Trainer/model/1", "taxi/Trainer/model/2")
    assert unneeded(needed=["taxi/Trainer/model/2/data"]) == ["taxi/Trainer/model/1"]


@pytest.mark.parametrize(
    "folder",
    ["taxi/serving/1", "taxi/Trainer/model/4", "taxi/Other/model/1", "taxi/MyTrainer/model/1", "Trainer/1"],
)
def test_folder_that_no_execution_of_its_node_made_stays_though_a_dropped_run_names_it(
    unneeded, made, folder
):
    made(folder)
    assert unneeded(dropped=[folder]) == []


def test_node_s_name_may_hold_a_slash(unneeded, made):
    made("taxi/steps/Deep/out/3", "taxi/Deep/out/3")
    assert unneeded() == ["taxi/steps/Deep/out/3"]


def test_folder_of_a_dropped_rehearsal_goes_and_that_of_a_kept_one_stays(unneeded, made):
    made("taxi/run-1/Trainer_1/model", "taxi/run-2/Trainer_1/model")
    assert unneeded(runs=["run-1"]) == ["taxi/run-1"]


def test_files_of_an_execution_while_it_ran_go_as_a_whole_and_not_while_one_of_them_is_new(unneeded, made):
    system = "taxi/Trainer/.system"
    kinds = ("executor_execution/{}", "stateful_working_dir/of-{}")
    made(*(f"{system}/{kind.format(number)}/old" for kind in kinds for number in (1, 2)))
    made(*(f"{system}/{kind.format(2)}/new" for kind in kinds), at=JUST_NOW)
    assert unneeded() == [f"{system}/executor_execution/1", f"{system}/stateful_working_dir/of-1"]


def test_system_folder_that_is_old_goes_at_once_and_that_of_no_node_stays(unneeded, made):
    made("taxi/Trainer/.system/executor_execution/1", "taxi/mine/.system/executor_execution/1")
    assert unneeded() == ["taxi/Trainer/.system"]


def test_links_are_not_followed_and_do_not_go(unneeded, made, tmp_path):
    made("elsewhere/Trainer/model/1", "taxi/Trainer/model")
    (tmp_path / "taxi/Trainer/model/1").symlink_to(tmp_path / "elsewhere/Trainer/model/1")
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere")
    assert unneeded(needed=["elsewhere"], since=float("inf")) == []
    assert children(tmp_path) == [tmp_path / "elsewhere", tmp_path / "taxi"]


def test_folder_that_does_not_exist_has_nothing_in_it(tmp_path):
    assert children(tmp_path / "none") == []
