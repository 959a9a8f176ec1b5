"""JSON Lines: what objects become, and which lines and files are refused."""

import gzip
import json

import pytest

from slipway.components.ingest import json_lines, json_objects
from slipway.components.ingest.blocks import FileError, InputFile
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.options import Options
from slipway.components.ingest.source_limits import SourceLimits

ALL = {"split": {"all": 1}}


def test_json_objects_become_rows_with_every_key(ingest, write):
    lines = [
        '{"n": 1, "x": 2, "s": "a", "l": [1, 2]}',
        '{"x": 2.5, "b": true, "s": ""}',
        "",
        '{"n": null, "l": []}',
    ]
    found = ingest(write("\n".join(lines), "in.jsonl"), format="jsonl", **ALL)
    assert found.rows == [
        {"n": [1], "x": [2.0], "s": [b"a"], "l": [1, 2], "b": []},
        {"n": [], "x": [2.5], "s": [b""], "l": [], "b": [1]},
        {"n": [], "x": [], "s": [], "l": [], "b": []},
    ]


def test_json_column_of_text_and_numbers_is_text(ingest, write):
    found = ingest(write('{"a": 1}\n{"a": "x"}\n{"a": [2.5, null]}\n', "in.jsonl"), format="jsonl", **ALL)
    assert [row["a"] for row in found.rows][:2] == [[b"1"], [b"x"]]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"a": 1', "broken JSON"),
        ('{"a": NaN}', "NaN or Infinity, which JSON does not have"),
        ('{"a": [1, -Infinity]}', "NaN or Infinity, which JSON does not have"),
        ('{"a": "NaN" 1}', "broken JSON"),
        ("[1]", "not a JSON object"),
        ("5", "not a JSON object"),
        ('{"a": {"b": 1}}', "nested JSON"),
        ('{"a": [[1]]}', "nested JSON"),
        ('{"a": 9223372036854775808}', "a whole number beyond 64 bits"),
        ('{"a": "' + "x" * 2000 + '"}', "longer than the limit"),
        (b'{"a": "caf\xe9"}', "not valid text"),
        ("x" * 5000, "longer than the limit"),
    ],
)
def test_line_that_is_no_row_is_quarantined(ingest, write, line, reason):
    content = b'{"a": 1}\n' + (line.encode() if isinstance(line, str) else line) + b'\n{"a": 3}\n'
    found = ingest(
        write(content, "in.jsonl"),
        format="jsonl",
        limits=SourceLimits(row_bytes=1000),
        block_bytes=500,
        **ALL,
    )
    assert [row["a"] for row in found.rows] == [[1], [3]]
    assert [(r["line"], r["offset"], r["reason"]) for r in found.rejects] == [(2, 9, reason)]


def test_json_value_of_another_type_than_the_schema_says_is_quarantined(ingest, write):
    path = write('{"a": 1}\n{"a": "1"}\n{"a": 2.0}\n{"a": 2.5}\n', "in.jsonl")
    found = ingest(path, format="jsonl", known={"a": ColumnType.INT}, **ALL)
    assert [row["a"] for row in found.rows] == [[1], [2]]
    assert [(r["line"], r["column"], r["reason"]) for r in found.rejects] == [
        (2, "a", "not a whole number"),
        (4, "a", "not a whole number"),
    ]


def test_json_with_byte_order_mark_and_compression(ingest, write):
    path = write(gzip.compress(b'\xef\xbb\xbf{"a": 1}\n'), "in.jsonl.gz")
    assert ingest(path, format="jsonl", **ALL).rows == [{"a": [1]}]


def test_file_without_an_object_is_refused(ingest, write):
    with pytest.raises(FileError, match="holds no JSON object"):
        ingest(write("a,b\n1,2\n", "in.jsonl"), format="jsonl")


def test_json_whole_numbers_beyond_64_bits_are_quarantined_however_long(ingest, write):
    lines = [
        '{"id": 1}', '{"id": 18446744073709551616}', '{"id": 1e30}', f'{{"id": [1, {10**30}]}}',
        '{"id": -9223372036854775809}', '{"id": %s}' % ("9" * 5000),
    ]  # fmt: skip
    found = ingest(write("\n".join(lines), "in.jsonl"), format="jsonl", **ALL)
    assert [row["id"] for row in found.rows] == [[1.0], [pytest.approx(1e30)]]
    assert [(r["line"], r["reason"]) for r in found.rejects] == [
        (2, "a whole number beyond 64 bits"),
        (4, "a whole number beyond 64 bits"),
        (5, "a whole number beyond 64 bits"),
        (6, "a number beyond 64 bits"),
    ]


def test_json_whole_numbers_beyond_64_bits_are_fractions_where_types_say_so(ingest, write):
    settings = {"types": {"x": "float"}, "max_bad_share": 1.0, **ALL}
    lines = [f'{{"x": {number}, "id": 1}}' for number in (2**63, f"[{2**64 - 1}, 3]", 10**30, 10**39, 7)]
    lines.append(f'{{"x": {10**30}, "id": {10**30}}}')
    found = ingest(write("\n".join(lines), "in.jsonl"), format="jsonl", **settings)
    assert [row["x"] for row in found.splits["all"]] == [
        [pytest.approx(2.0**63)], [pytest.approx(2.0**64), 3.0], [pytest.approx(1e30)], [7.0]
    ]  # fmt: skip
    assert sorted(reject["reason"] for reject in found.rejects) == [
        "a number beyond 32-bit fractions", "a whole number beyond 64 bits"
    ]  # fmt: skip


def test_json_objects_with_a_key_twice_are_quarantined_and_the_last_value_does_not_win(ingest, write):
    lines = [
        '{"id": 1, "at": "10:30:00"}', '{"id": 1, "at": "x", "id": 2}', '{"id": 3, "at": "\\"id\\": 4"}',
        '{"id": 5, "i\\u0064" :6}', '{"id": %s, "id": 7}' % ("[" * 1000 + "]" * 1000),
    ]  # fmt: skip
    found = ingest(write("\n".join(lines), "in.jsonl"), format="jsonl", **ALL)
    assert [row["id"] for row in found.rows] == [[1], [3]]
    assert [(r["line"], r["reason"], r["detail"]) for r in found.rejects] == [
        (2, "a key twice", "key 'id'"),
        (4, "a key twice", "key 'id'"),
        (5, "a key twice", "of nested values"),
    ]


def test_json_numbers_in_a_column_of_text_stay_as_they_are_written(ingest, write):
    lines = '\ufeff{"v": 1.50, "n": 1.0}\n{"v": "x"}\n{"v": [1.10, true, "y", -0]}\n{"v": 1E2}\n'
    found = ingest(write(lines, "in.jsonl"), format="jsonl", **ALL)
    assert [row["v"] for row in found.rows] == [[b"1.50"], [b"x"], [b"1.10", b"true", b"y", b"-0"], [b"1E2"]]
    assert found.rows[0]["n"] == [1.0]


def test_json_key_without_a_name_is_quarantined(ingest, write):
    found = ingest(write('{"a": 1}\n{"": 2}\n{" ": 3}\n', "in.jsonl"), format="jsonl", **ALL)
    assert found.rows == [{"a": [1]}]
    assert found.reasons == ["a key without a name"] * 2


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('[\n{"a": 1},\n{"a": 2}\n]\n', "holds one JSON array", "jq -c '.[]' "),
        ('[{"a": 1}, {"a": 2}]\n', "holds one JSON array", "jq -c '.[]' "),
        ('{\n "a": 1\n}\n', "holds JSON objects over several lines each", "jq -c . "),
        (
            '{"a": {"b": 1}}\n' * 2,
            "holds no object that can be read as a row; the first: ",
            "its own key",
        ),
        ('{"a": %s}\n' % 2**64, "line 1: a whole number beyond 64 bits (key 'a')", "correct these lines"),
    ],
)
def test_json_that_is_no_json_lines_is_called_what_it_is(ingest, write, text, message, hint):
    with pytest.raises(FileError) as caught:
        ingest(write(text, "in.jsonl"), format="jsonl")
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("broken", ["{", '[{"a": 1}]', '[{"a": 1,'])
def test_broken_first_line_above_objects_goes_to_the_quarantine(ingest, write, broken):
    found = ingest(write("\n".join([broken, '{"a": 1}', '{"a": 2}', ""]), "in.jsonl"), format="jsonl", **ALL)
    assert (len(found.rows), [reject["line"] for reject in found.rejects]) == (2, [1])


def test_column_that_no_line_of_a_block_has_is_not_looked_for_line_by_line(write, monkeypatch):
    lines = [json.dumps({f"k{line // 10}": 1}) for line in range(300)]
    file = InputFile("in.jsonl", write("\n".join(lines), "in.jsonl"))
    options = Options(format="jsonl", block_bytes=120)
    looked = []
    array = json_lines._array
    monkeypatch.setattr(json_lines, "_array", lambda *args: looked.append(args) or array(*args))
    blocks = list(json_lines.read(file, options, json_lines.infer(file, options, {})))
    assert len(blocks) >= 20
    assert len(looked) <= 3 * len(blocks)  # not 30 for each


def test_rows_with_zeros_and_dates_are_not_searched_for_tiny_numbers(monkeypatch):
    monkeypatch.setattr(json_objects, "_TINY", None)
    assert json_objects.parse_object(b'{"x": 0.0, "day": "2026-11-30"}')[0] == {"x": 0.0, "day": "2026-11-30"}
