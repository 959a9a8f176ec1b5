"""Which of a node's parameters name what it reads."""

import pytest

from slipway.pipeline.plan.named_files import (
    imported_patterns,
    named_code,
    named_files,
    statistics_patterns,
)
from slipway.pipeline.plan.node_fingerprints import matching_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder that is worked in, with files in it."""
    for name in ("schema.pbtxt", "utils.py", "words/en.txt", "train/1.png", "out/metadata.db"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def named(values, node_type="Mine", written=()):
    return named_files(values, node_type=node_type, written=written)


@pytest.mark.parametrize("how", ["{}/schema.pbtxt", "schema.pbtxt", "./words/../schema.pbtxt"])
def test_file_counts_wherever_it_is_named_from(folder, how):
    assert named({"schema_file": how.format(folder)}) == ([f"{folder}/schema.pbtxt"], [])


def test_file_counts_deep_inside_a_parameter(folder):
    values = {"custom_config": {"files": ["schema.pbtxt", "none.txt"], "steps": 5}}
    assert named(values) == ([f"{folder}/schema.pbtxt"], [])


@pytest.mark.parametrize("how", ["{}/words", "words", "./words/"])
def test_folder_counts_with_all_in_it(folder, how):
    assert named({"data_dir": how.format(folder)}) == ([], [f"{folder}/words/**/*"])


@pytest.mark.parametrize("how", ["{}/words/*.txt", "words/*.txt", "./words/**/e?.txt", "./*/en.txt"])
def test_pattern_counts_with_all_that_it_matches(folder, how):
    (folder / "words/en.md").touch()
    files, patterns = named({"data": how.format(folder)})
    assert files == []
    assert matching_files(patterns) == [folder / "words/en.txt"]


@pytest.mark.parametrize("text", ["*.txt", "./*", "./**/en.txt", "out/**", "a * b"])
def test_pattern_without_a_slash_or_of_what_the_run_writes_does_not_count(folder, text):
    assert named({"data": text}, written=[folder / "out" / "artifacts"]) == ([], [])


def test_each_file_of_a_text_with_commas_counts(folder):
    both = ([f"{folder}/schema.pbtxt", f"{folder}/words/en.txt"], [])
    assert named({"files": "schema.pbtxt, words/en.txt"}) == both
    assert named({"files": [f"{folder}/schema.pbtxt;./words/en.txt"]}) == both
    assert named({"columns": "train,out"}) == ([], []), "words in a list are no folders"


def test_file_counts_by_its_address_and_in_the_home_folder(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder / "words"))
    found = ([f"{folder}/words/en.txt"], [])
    assert named({"file": f"file://{folder}/words/en.txt"}) == named({"file": "~/en.txt"}) == found
    assert named({"sign": "~"}) == ([], [])


def test_files_of_a_checkpoint_count_by_what_their_names_begin_with(folder):
    for name in ("bert.ckpt.index", "bert.ckpt.data-00000-of-00001", "bert.ckpt-2.index"):
        (folder / "train" / name).touch()
    files, patterns = named({"custom_config": {"pretrained": "train/bert.ckpt"}})
    assert files == []
    names = ["bert.ckpt.data-00000-of-00001", "bert.ckpt.index"]
    assert matching_files(patterns) == [folder / "train" / name for name in names]


@pytest.mark.parametrize(
    "how",
    ["words/{language}.txt", "./words/{}.txt", "words/%s.txt", "{place}/words/%02d.txt", "words/{:0>2}.txt"],
)
def test_file_counts_whose_name_code_fills_in(folder, how):
    files, patterns = named({"data": how.replace("{place}", str(folder))})
    assert files == []
    assert matching_files(patterns) == [folder / "words/en.txt"]


def test_hidden_files_count_only_if_they_are_named_themselves(folder):
    """Other programs write them, such as git and file managers: each would make a training run again."""
    for hidden in ("words/.DS_Store", "words/.git/index", "words/.vocabulary"):
        (folder / hidden).parent.mkdir(exist_ok=True)
        (folder / hidden).touch()
    _, patterns = named({"data_dir": "words"})
    assert matching_files(patterns) == [folder / "words/en.txt"]
    assert named({"file": "words/.vocabulary"}) == ([f"{folder}/words/.vocabulary"], [])


def test_path_may_also_start_at_the_project(folder, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    values = {"pretrained": {"path": "words/en.txt"}, "of": "./words", "here": "."}
    assert named_files(values, node_type="Trainer") == ([], [])
    assert named_files(values, node_type="Trainer", folders=[folder]) == (
        [f"{folder}/words/en.txt"],
        [f"{folder}/words/**/*"],
    )


def test_word_in_a_list_is_no_folder(folder):
    assert named({"splits": ["train"]}) == ([], [])
    assert named({"splits": ["./train"]}) == ([], [f"{folder}/train/**/*"])


def test_folder_whose_name_has_signs_of_a_pattern_is_taken_by_its_letters(folder):
    (folder / "run[1]").mkdir()
    assert named({"from": "run[1]"}) == ([], [f"{folder}/run[[]1]/**/*"])


@pytest.mark.parametrize("name", ["words", "words [v1]", "wo*ds?"])
def test_what_an_importer_imports_is_found_by_the_letters_of_its_path(folder, name):
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "de.txt").touch()
    found = matching_files(imported_patterns(f"{folder}/{name}"))
    assert folder / name / "de.txt" in found
    assert {path.parent.name for path in found} == {name}
    assert matching_files(imported_patterns(f"{folder}/{name}/de.txt")) == [folder / name / "de.txt"]


@pytest.mark.parametrize(
    ("values", "folders"),
    [
        ({"serving_folder": "s3://b/served/", "label": "tips"}, ["s3://b/served"]),
        ({"reference_folder": "gs://b/then[1]", "serving_folder": ""}, ["gs://b/then[[]1]"]),
        ({"serving_folder": "/data/served", "input_base": "gs://b/trips"}, []),
    ],
)
def test_statistics_in_a_store_are_listed(values, folders):
    assert statistics_patterns(values) == [f"{each}/{end}" for each in folders for end in ("*", "Split-*/*")]


def test_what_an_importer_imports_from_a_store_has_no_patterns():
    assert imported_patterns("gs://b/words") == []


@pytest.mark.parametrize(
    "text", ["", ".", "..", "/", "x" * 5000, "nul\0", "a sentence / of words", "utils.py"]
)
def test_what_is_no_file_of_the_nodes_is_none(folder, text):
    assert named({"text": text}) == ([], [])


def test_folder_that_holds_what_the_run_writes_does_not_count(folder):
    assert named({"root": "out"}, written=[folder / "out" / "artifacts"]) == ([], [])


def test_what_is_written_or_read_in_another_way_does_not_count(folder):
    assert named({"push_destination": {"base_directory": "./words"}}, node_type="Pusher") == ([], [])
    assert named({"input_base": "words", "artifact_uri": "words"}) == ([], [])
    splits = {"splits": [{"name": "all", "pattern": "{YYYY}-{MM}-{DD}/*.csv"}]}
    assert named({"input_base": str(folder), "input_config": splits}) == ([], []), "other days"
    assert named({"input_config": "schema.pbtxt"}) == ([f"{folder}/schema.pbtxt"], [])


def test_dotted_paths_and_python_files_are_code():
    values = {"run_fn": "shop.trainer.run_fn", "module_file": "/srv/trainer.py", "splits": ["train", "1.5"]}
    assert named_code(values) == {"shop.trainer.run_fn", "/srv/trainer.py"}
    assert named_code({"files": "a.py, file:///srv/b.py"}) >= {"a.py", "/srv/b.py"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("shop.models:build", "shop.models:build"),
        ("models:build", "models:build"),
        ("shop/models.py:build", "shop/models.py"),
        ("gs://b/models.py", "gs://b/models.py"),
        ("10:30", None),
        ("a b:c", None),
    ],
)
def test_function_may_follow_a_colon(text, code):
    assert named_code({"entry": text}) == ({code} if code else set())


def test_module_without_a_dot_is_code_where_the_parameter_says_that_it_is_a_module():
    metrics = [{"class_name": "Share", "module": "shop_metrics"}, {"class_name": "AUC", "module": ""}]
    values = {
        "eval_config": {"metrics_specs": [{"metrics": metrics}]},
        "module_path": "shop",
        "split": "eval",
    }
    assert named_code(values) == {"shop_metrics", "shop"}
    assert named_code({"module_path": "shop@/pipeline_root/_wheels/shop.whl"}) == set()
