"""Which file a workload is, what a `--set` beside it is read as, and how a file that is none is told."""

from pathlib import Path

import pytest

from slipway.pipeline.config import read_parameters
from slipway.pipeline.config.workload_file import WorkloadChoice, load_workload, read_assignments
from slipway.pipeline.errors import ConfigError, UsageError

ROOT = Path(__file__).resolve().parents[4]
TAXI = Path("workloads/taxi/workload.yaml")


@pytest.fixture
def root(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path


def _workload(root, name):
    (root / f"workloads/{name}").mkdir(parents=True)
    (root / f"workloads/{name}/workload.yaml").write_text("name: toy\n")


def test_a_choice_of_the_command_line_reads_each_set_once_and_keeps_its_words():
    words = [" train.epochs = 2 ", "train.exports=[litert]"]
    chosen = WorkloadChoice(Path("taxi"), read_assignments(words), "dev")
    assert [each.text for each in chosen.sets] == words
    assert chosen.options == ("--profile", "dev", "--set", words[0], "--set", words[1])
    assert chosen == WorkloadChoice(Path("taxi"), read_assignments(words), "dev")
    assert chosen != WorkloadChoice(Path("taxi"), read_assignments(words[:1]), "dev")
    assert WorkloadChoice(Path("taxi")).options == ()
    plain = WorkloadChoice(TAXI, chosen.sets).config()
    assert (plain.train.epochs, plain.train.exports) == (2, ("litert",))


def test_settings_know_the_words_that_name_their_workload(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for named in ("taxi", TAXI, ROOT / TAXI):
        assert WorkloadChoice(Path(named)).config().words == ("taxi",)
    assert WorkloadChoice(Path("taxi"), profile="dev").config().words == ("taxi", "--profile", "dev")
    text = (ROOT / TAXI).read_text(encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    assert WorkloadChoice(Path("mine.yaml")).config().words == ("mine.yaml",)


def test_a_workload_is_its_file_here_or_in_the_project_or_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for named in ("taxi", TAXI, ROOT / TAXI):
        assert WorkloadChoice(Path(named)).file == ROOT / TAXI
    assert WorkloadChoice(Path("none/workload.yaml")).file == ROOT / "none/workload.yaml"
    (tmp_path / TAXI.parent).mkdir(parents=True)
    (tmp_path / TAXI).touch()
    assert WorkloadChoice(TAXI).file == tmp_path / TAXI


def test_parameters_of_a_pipeline_stay_as_they_are_written_and_the_last_counts():
    assert read_parameters(["a=1", "b=x=[", "a= 2 "]) == {"a": " 2 ", "b": "x=["}
    with pytest.raises(UsageError, match=r"^--set steps: must be parameter=value$"):
        read_parameters(["a=1", "steps"])


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "w.yaml is empty; a workload file begins with, for example: name: taxi"),
        (b"# nothing\n", "w.yaml is empty"),
        (b"just text", "w.yaml does not hold keys with values"),
        (b"- a\n", "w.yaml does not hold keys with values"),
        (b"a: caf\xe9", "w.yaml:1: byte 0xe9 is not UTF-8"),
        (b"name: x\nname: y", "w.yaml:2: name: given twice, first on line 1; keep one"),
        (b"a: !!python/object/apply:os.system ['true']", "w.yaml:1: text that begins with ! is a tag"),
        (b"x" * 2_000_000, "w.yaml: 1000001 bytes; at most 1000000 are read"),
    ],
    ids=range(8),
)
def test_file_that_is_no_workload_is_refused(root, raw, message):
    (root / "w.yaml").write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        load_workload(Path("w.yaml"), root=root)
    assert caught.value.message.startswith(message)


def test_missing_file_is_reported_with_the_workloads_there_are(root):
    _workload(root, "toy")
    with pytest.raises(ConfigError) as caught:
        load_workload(Path("workloads/tay/workload.yaml"), root=root)
    assert caught.value.message == "workloads/tay/workload.yaml does not exist"
    assert caught.value.hint == "there is workloads/toy/workload.yaml"


@pytest.mark.parametrize("path", ["taxii", "taxii.yaml", "workloads/taxii/workload.yaml"])
def test_nearest_workload_is_named_first_and_how_many_are_left_out(root, path):
    for name in ("aa", "bb", "cc", "dd", "ee", "taxi"):
        _workload(root, name)
    with pytest.raises(ConfigError) as caught:
        load_workload(Path(path), root=root)
    assert caught.value.hint.startswith(
        "there are workloads/taxi/workload.yaml, workloads/aa/workload.yaml, "
    )
    assert caught.value.hint.endswith("workloads/dd/workload.yaml, and 1 more")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("work", "work is a folder; name the workload.yaml in it"),
        ("", "this project has no workload yet"),
        (".", "this project has no workload yet"),
        ("\x1b[31m", "'\\x1b[31m' does not exist"),
        ("a\0b", "'a\\x00b' does not exist"),
        ("x" * 5000, "cannot be read: File name too long"),
    ],
)
def test_path_that_is_no_file_is_refused(root, path, message):
    with pytest.raises(ConfigError) as caught:
        load_workload(Path(path), root=root)
    assert message in caught.value.message


def test_no_name_is_not_told_as_no_workload_where_there_are_several(root):
    for name in ("aa", "bb"):
        _workload(root, name)
    with pytest.raises(ConfigError) as caught:
        load_workload(Path(), root=root)
    assert caught.value.message == "no workload is named"
    assert caught.value.hint.startswith("there are workloads/aa/workload.yaml, ")
