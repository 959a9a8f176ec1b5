"""What changed between two fingerprints, in words, the most important first."""

import json

from slipway.pipeline.fingerprint.fingerprint import flatten_params
from slipway.pipeline.fingerprint.rerun_reasons import reasons

PARTS = {
    "code:workloads/taxi/model.py": "aa",
    "data:trips-01.csv": "d1",
    "data:trips-02.csv": "d2",
    "data:trips-03.csv": "d3",
    "param:train.batch_size": "512",
    "external:latest_blessed_model": "7",
    "stack:tfx": "1.20.0",
    "upstream:Transform": "k1",
}


def told(*, change=None, add=None, drop=(), start=PARTS):
    """The reasons after parts changed, appeared or went."""
    kept = {name: value for name, value in start.items() if name not in drop}
    return reasons(kept | (change or {}) | (add or {}), start)


def test_equal_parts_have_no_reasons():
    assert told() == []


def test_one_changed_module_is_named():
    assert told(change={"code:workloads/taxi/model.py": "bb"}) == ["workloads/taxi/model.py changed"]


def test_many_changed_modules_are_counted():
    start = {f"code:m{i}.py": "1" for i in range(5)}
    changed = {"code:m1.py": "2", "code:m3.py": "2", "code:m4.py": "2"}
    assert told(start=start, change=changed) == ["code changed: 3 of 5 files (m1.py and 2 more)"]


def test_module_that_comes_or_goes_is_named():
    assert told(add={"code:a.py": "1"}) == ["code: 1 file newly imported (a.py)"]
    assert told(drop=["code:workloads/taxi/model.py"]) == [
        "code: 1 file no longer imported (workloads/taxi/model.py)"
    ]


def test_data_that_a_node_names_as_code_is_read_not_imported():
    assert told(add={"code:/data/new.csv": "1"}) == ["1 file newly read (/data/new.csv)"]


def test_parameter_shows_both_values():
    assert told(change={"param:train.batch_size": "1024"}) == ["train.batch_size 512 -> 1024"]


def test_span_is_told_once_and_as_its_day_if_the_source_has_days():
    ends = [f"param:range_config.static_range.{end}_span_number" for end in ("start", "end")]
    days = PARTS | {"param:input_config.splits": '[{"name":"all","pattern":"{YYYY}-{MM}-{DD}/*.csv"}]'}
    first, next_day = dict.fromkeys(ends, "20878"), dict.fromkeys(ends, "20879")
    assert told(change=next_day, start=PARTS | first) == ["span 20878 -> 20879"]
    assert told(change=next_day, start=days | first) == ['span "2027-03-01" -> "2027-03-02"']
    assert told(add=first, start=days) == ['span set to "2027-03-01"']
    assert ends[0][6:] + " set to 20870" in told(change={ends[0]: "20870"}, start=days | first), (
        "several spans"
    )


def test_parameter_that_comes_or_goes_shows_its_value():
    assert told(add={"param:train.dropout": "0.1"}) == ["train.dropout set to 0.1"]
    assert told(drop=["param:train.batch_size"]) == ["train.batch_size no longer set (was 512)"]


def test_text_and_number_of_the_same_look_are_distinguished():
    assert told(change={"param:train.batch_size": '"512"'}) == ['train.batch_size 512 -> "512"']


def test_letters_beyond_ascii_are_shown_as_letters():
    assert told(add=flatten_params("param:", {"name": "café"})) == ['name set to "café"']


def test_long_values_are_shortened():
    [line] = told(change={"param:train.batch_size": json.dumps("x" * 500)})
    assert line == f'train.batch_size 512 -> "{"x" * 38}…'


def test_shortened_values_still_show_where_they_differ():
    start = {"param:x": json.dumps("a" * 300 + "LEFT" + "b" * 300)}
    [line] = told(start=start, change={"param:x": json.dumps("a" * 300 + "RIGHT" + "b" * 300)})
    was, now = line.removeprefix("x ").split(" -> ")
    assert was.startswith("…aaaaaaaaaaLEFTbb")
    assert now.startswith("…aaaaaaaaaaRIGHTbb")
    assert len(was) == len(now) == 40


def test_value_that_grew_at_its_end_shows_the_end():
    start = {"param:x": json.dumps(list(range(30)))}
    [line] = told(start=start, change={"param:x": json.dumps(list(range(31)))})
    assert line == "x …27, 28, 29] -> …27, 28, 29, 30]"


def test_many_parameters_are_cut_with_a_count():
    added = {f"param:p{i:02}": "1" for i in range(20)}
    lines = told(add=added)
    assert lines[0] == "p00 set to 1"
    assert lines[-1] == "12 more parameters changed"
    assert len(lines) == 9


def test_changed_data_is_counted_and_the_first_file_named():
    assert told(change={"data:trips-02.csv": "x"}) == ["data changed: 1 of 3 files (trips-02.csv)"]
    assert told(change={"data:trips-02.csv": "x", "data:trips-03.csv": "x"}) == [
        "data changed: 2 of 3 files (trips-02.csv and 1 more)"
    ]


def test_data_that_comes_and_goes_is_counted():
    assert told(add={"data:new.csv": "1"}, drop=["data:trips-01.csv", "data:trips-02.csv"]) == [
        "data: 1 file added, 2 removed"
    ]
    assert told(add={"data:b.csv": "1", "data:c.csv": "1"}) == ["data: 2 files added (b.csv and 1 more)"]
    assert told(drop=["data:trips-01.csv"]) == ["data: 1 file removed (trips-01.csv)"]


def test_only_file_is_one_file():
    assert told(start={"data:a.csv": "1"}, change={"data:a.csv": "2"}) == [
        "data changed: 1 of 1 file (a.csv)"
    ]


def test_upstream_node_reran():
    assert told(change={"upstream:Transform": "k2"}) == ["Transform's result changed"]
    assert told(add={"upstream:Tuner": "k"}) == ["now reads from Tuner"]
    assert told(drop=["upstream:Transform"]) == ["no longer reads from Transform"]


def test_input_that_reads_something_else_is_named():
    start = {"input:model": "Trainer.model"}
    assert told(start=start, change={"input:model": "Tuner.model"}) == [
        "input model Trainer.model -> Tuner.model"
    ]
    assert told(start=start, add={"input:base": "Old.model"}) == ["input base set to Old.model"]
    assert told(start=start, drop=["input:model"]) == ["input model no longer set (was Trainer.model)"]


def test_result_of_a_version_that_did_not_note_inputs_is_told_as_one():
    assert told(add={"input:model": "Trainer.model", "input:schema": "SchemaGen.schema"}) == [
        "its earlier result was kept by an older version, which did not note which outputs it read"
    ]
    assert told(start={"node:id": "A"}, add={"input:model": "B.model"}) == ["input model set to B.model"]


def test_stack_shows_versions():
    assert told(change={"stack:tfx": "1.21.0"}) == ["tfx 1.20.0 -> 1.21.0"]
    assert told(add={"stack:jax": "0.10.2"}) == ["jax 0.10.2 added"]
    assert told(drop=["stack:tfx"]) == ["tfx 1.20.0 removed"]


def test_changed_baseline_is_reported_in_words():
    assert told(change={"external:latest_blessed_model": "8"}) == ["the latest blessed model changed"]
    assert told(drop=["external:latest_blessed_model"]) == ["the latest blessed model is gone"]


def test_causes_come_before_what_only_passes_them_on():
    assert told(change=dict.fromkeys(PARTS, "9")) == [
        "workloads/taxi/model.py changed",
        "train.batch_size 512 -> 9",
        "data changed: 3 of 3 files (trips-01.csv and 2 more)",
        "the latest blessed model changed",
        "tfx 1.20.0 -> 9",
        "Transform's result changed",
    ]


def test_names_cannot_command_the_terminal():
    [line] = told(add={"data:a\x1b[2J\n\udce9.csv": "1"})
    assert line == "data: 1 file added (a\\x1b[2J\\n\\udce9.csv)"


def test_result_of_a_version_that_did_not_tell_nodes_apart_is_explained_once():
    old = {"param:steps": "5", "external:pipeline": "taxi", "upstream:Ingest": "a"}
    new = {"param:steps": "6", "node:id": "Trainer", "node:pipeline": "taxi", "upstream:Ingest": "b"}
    [line] = reasons(new, old)
    assert line == "its earlier result was kept by an older version, which did not distinguish equal nodes"
