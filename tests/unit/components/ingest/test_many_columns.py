"""Columns by the thousand: refused above the limit, and below it no work that grows with their square."""

import json

import pytest

from slipway.components.errors import ComponentError
from slipway.components.ingest import json_lines
from slipway.components.ingest.blocks import FileError, InputFile
from slipway.components.ingest.options import Options
from slipway.components.ingest.source_limits import SourceLimits
from slipway.components.ingest.typed_rows import example_rows

ALL = {"split": {"all": 1}}


def test_csv_of_more_columns_than_the_limit_is_refused_with_the_key_that_raises_it(ingest, write):
    path = write("a,b,c,d\n1,2,3,4\n")
    with pytest.raises(
        FileError, match=r"in\.csv has 4 columns, more than data\.limits\.columns \(3\)"
    ) as caught:
        ingest(path, limits=SourceLimits(columns=3), **ALL)
    assert "data.limits.columns" in caught.value.hint
    assert ingest(path, limits=SourceLimits(columns=3), columns=("a", "d"), **ALL).rows == [
        {"a": [1], "d": [4]}
    ]


def test_key_in_each_line_that_no_other_has_is_refused_at_the_limit(ingest, write):
    path = write("".join(json.dumps({f"k{line}": 1}) + "\n" for line in range(1000)), "in.jsonl")
    with pytest.raises(
        FileError, match=r"more than data\.limits\.columns \(50\) different keys, such as 'k50'"
    ):
        ingest(path, format="jsonl", limits=SourceLimits(columns=50), **ALL)
    found = ingest(path, format="jsonl", limits=SourceLimits(columns=50), columns=("k7",), **ALL)
    assert [row["k7"] for row in found.rows if row["k7"]] == [[1]]


def test_keys_of_all_files_count_together(ingest, write):
    write('{"a": 1, "b": 2}\n', "1.jsonl")
    path = write('{"c": 1, "d": 2}\n', "2.jsonl")
    file = InputFile("2.jsonl", path)
    assert len(json_lines.infer(file, Options(format="jsonl", limits=SourceLimits(columns=3)), {})) == 2
    from slipway.components.ingest.local_ingest import infer_columns
    from slipway.components.ingest.planning import plan_tasks
    from slipway.components.ingest.storage import list_files

    [task] = plan_tasks(
        {None: list_files(str(path.parent / "*.jsonl"))}, {"all": ""}, quarantine="", min_shards=1
    )
    with pytest.raises(
        ComponentError, match=r"the source up to .*2\.jsonl has 4 columns, more than data\.limits"
    ):
        infer_columns(task, options=Options(format="jsonl", limits=SourceLimits(columns=3)), known={})


def test_many_keys_are_read_some_rows_at_a_time_and_rows_keep_their_numbers(write, monkeypatch):
    monkeypatch.setattr(json_lines, "_MOST_CELLS", 600)
    lines = [json.dumps({f"k{line}": line, "n": line}) for line in range(30)]
    lines[5] = lines[23] = "broken"
    path = write("\n".join(lines), "in.jsonl")
    file, options = InputFile("in.jsonl", path), Options(format="jsonl")
    columns = json_lines.infer(file, options, {})
    blocks = list(json_lines.read(file, options, columns))
    assert max(block.rows for block in blocks) * len(columns) <= 600
    rows = [row for found in example_rows(file, options, columns, known={}) for row in found.rows.tolist()]
    assert rows == [line for line in range(30) if line not in (5, 23)]
    rejected = [
        number for found in example_rows(file, options, columns, known={}) for number, _ in found.rejects
    ]
    assert rejected == [5, 23]
