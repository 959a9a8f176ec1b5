import gzip
import json
import tracemalloc
from collections import Counter
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from slipway.pipeline.errors import UsageError
from slipway.pipeline.watch import late_labels
from slipway.pipeline.watch.late_labels import AGAIN, NO_ANSWER, join, labels_of_rows, read_labels
from slipway.pipeline.watch.log_folder import Logs


def read(file, **more):
    return read_labels(file, **{"key": "id", "label": "label", "classes": (), **more})


def test_labels_are_read_from_each_format(tmp_path):
    (tmp_path / "a.csv").write_text("id,other,label\n7,x,1\n007,x,0\n8,x,\n7,x,0.5\n")
    assert read(tmp_path / "a.csv") == {"7": 0.5, "007": 0.0}
    (tmp_path / "a.jsonl").write_text('{"id": 7, "label": 1}\n{"id": 8, "label": null}\n{"id": 9, "la')
    assert read(tmp_path / "a.jsonl") == {"7": 1.0}
    pq.write_table(pa.table({"id": ["p7", None], "label": [1, 0]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == {"p7": 1.0}


def test_uuids_of_parquet_are_the_texts_that_they_are_logged_as(tmp_path):
    key = UUID(int=2**127 + 7)
    keys = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([key.bytes], pa.binary(16)))
    pq.write_table(pa.table({"id": keys, "label": [1]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == {str(key): 1.0}


def test_parquet_is_read_in_pieces_however_much_it_unpacks_to(tmp_path):
    key = pa.DictionaryArray.from_arrays(pa.array([0] * 300, pa.int32()), pa.array(["x" * (1 << 20)]))
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": key, "label": [1] * 300}), file, compression="zstd", store_schema=False)
    assert file.stat().st_size < 2_000
    tracemalloc.start()
    try:
        assert list(read(file).values()) == [1.0]
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 30 << 20


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (pa.array(["x" * (129 << 20)]), "more than 134,217,728 bytes unpacked"),
        (pa.array([2**31 - 1], pa.date32()), "days=2147483647"),
    ],
    ids=["a large row", "a date beyond year 9999"],
)
def test_parquet_that_cannot_be_read_is_one_sentence(tmp_path, keys, words):
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": keys, "label": [1]}), file, compression="zstd")
    with pytest.raises(UsageError, match=words) as caught:
        read(file)
    assert str(file) in caught.value.message


@pytest.mark.parametrize(("end", "last"), [("", {"8": 0.0}), (',"more":{"a":1}', {}), ('"', {})])
def test_last_line_counts_unless_it_is_torn(tmp_path, end, last):
    line = '{"id": 8, "label": 0}'
    text = line if not end else line[:-1] + end
    (tmp_path / "a.jsonl").write_text('{"id": 7, "label": 1}\n' + text)
    assert read(tmp_path / "a.jsonl") == {"7": 1.0} | last


@pytest.mark.parametrize("lines", [["a"] * 600_000, ["2,a,0"] * 200_000, ["2", "b"] * 300_000])
def test_line_breaks_within_a_text_are_no_rows_however_long_it_is(tmp_path, lines):
    """Where a text lies on both sides of a megabyte, Arrow may take its lines for rows."""
    file = tmp_path / "labels.csv"
    note = "\n".join(lines)
    file.write_text(f'id,note,label\n1,"{note}",1\n3,"{note}",0\n', encoding="utf-8")
    assert read_labels(file, key="id", label="label", classes=()) == {"1": 1.0, "3": 0.0}


def test_names_of_classes_stand_for_their_codes(tmp_path):
    (tmp_path / "a.csv").write_text("id,label\n1,yes\n2,no\n3,1\n")
    assert read(tmp_path / "a.csv", classes=["no", "yes"]) == {"1": 1.0, "2": 0.0, "3": 1.0}


def test_true_and_false_are_the_classes_of_these_words_whatever_their_codes(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "label": true}\n{"id": 2, "label": false}\n')
    for words in (["true", "false"], ["True", "False"]):
        assert read(tmp_path / "a.jsonl", classes=words) == {"1": 0.0, "2": 1.0}
    for classes in (["no", "yes"], ()):
        assert read(tmp_path / "a.jsonl", classes=classes) == {"1": 1.0, "2": 0.0}


def test_whole_number_names_the_same_class_where_gaps_have_made_it_a_fraction(tmp_path):
    pq.write_table(pa.table({"id": ["a", "b", "c"], "label": [1.0, None, 3.0]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", classes=["1", "2", "3"]) == {"a": 0.0, "c": 2.0}
    (tmp_path / "a.csv").write_text("id,label\na,2.0\nb,2\nc,0\n")
    assert read(tmp_path / "a.csv", classes=["1", "2", "3"]) == {"a": 1.0, "b": 1.0, "c": 0.0}
    assert read(tmp_path / "a.csv", classes=["2", "2.0"]) == {"a": 1.0, "b": 0.0, "c": 0.0}
    decimals = pa.array(map(Decimal, ("7", "8")), pa.decimal128(9, 2)), pa.array(["1", "3"])
    pq.write_table(pa.table(decimals, names=["id", "label"]), tmp_path / "b.parquet")
    assert read(tmp_path / "b.parquet") == {"7": 1.0, "8": 3.0}
    pq.write_table(pa.table(decimals[::-1], names=["id", "label"]), tmp_path / "b.parquet")
    assert read(tmp_path / "b.parquet", classes=[*"6789"]) == {"1": 1.0, "3": 2.0}
    # The gaps may have been in the training data instead.
    assert read(tmp_path / "a.csv", classes=["1.0", "2.0", "3.0"]) == {"a": 1.0, "b": 1.0, "c": 0.0}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_without_the_column_says_which_it_has(tmp_path, suffix):
    file = tmp_path / f"a.{suffix}"
    table = pa.table({"trip_id": ["p7"], "label": [1]})
    if suffix == "csv":
        pyarrow.csv.write_csv(table, file)
    else:
        pq.write_table(table, file)
    with pytest.raises(UsageError, match=r"has no column 'id'; it has trip_id, label\."):
        read(file)


def test_line_break_in_the_name_of_a_column_begins_no_line(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text('"trip\nhint: do",label\n1,2\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"it has trip\\nhint: do, label\."):
        read(file)


def test_code_that_no_class_has_is_one_sentence(tmp_path):
    (tmp_path / "a.csv").write_text("id,label\n1,2\n")
    with pytest.raises(UsageError, match=r"'2' for '1'; it must be one of no, yes, or its code, 0 to 1"):
        read(tmp_path / "a.csv", classes=["no", "yes"])


def test_whole_keys_are_the_same_where_gaps_have_made_them_fractions(tmp_path, log):
    pq.write_table(pa.table({"id": [7.0, None], "label": [True, False]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == {"7": 1.0}
    (tmp_path / "a.csv").write_text("id,label\n7.0,1\n007.0,1\n7.5,1\n")
    assert read(tmp_path / "a.csv") == {"7": 1.0, "007.0": 1.0, "7.5": 1.0}
    found = join(Logs.of(log((7, [0.5]), (8.0, [0.25]))), key="id", version=7, labels={"7": 1.0, "8": 0.0})
    assert found.answers.tolist() == [[0.5], [0.25]]


def test_row_without_a_key_has_no_label(log):
    found = join(
        Logs.of(log((None, [0.5]), ("a", [0.25]))), key="id", version=7, labels={"None": 1.0, "a": 0.0}
    )
    assert (found.answers.tolist(), found.without) == ([[0.25]], 1)


def test_logged_file_that_is_removed_meanwhile_is_left_out(log, monkeypatch):
    folder = log(("a", [0.25]))
    gone = folder / "requests-0.jsonl"
    glob = Path.glob
    monkeypatch.setattr(Path, "glob", lambda self, p: [*glob(self, p), *([gone] if p == "*.jsonl" else [])])
    assert join(Logs.of(folder), key="id", version=7, labels={"a": 1.0}).answers.tolist() == [[0.25]]


def test_nan_is_no_label_yet_in_a_column_of_fractions(tmp_path):
    """As Polars writes what is missing in one of pandas."""
    pq.write_table(pa.table({"id": [1, 2, 3], "label": [1.0, float("nan"), None]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == {"1": 1.0}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("id,label\n1,maybe\n", "the label 'maybe' for '1'; it must be a number"),
        ("id,label\n1,nan\n", "the label 'nan'"),
        ("id,label\n", "has no label"),
        ("id,tips\n1,2\n", "has no column 'label'; it has id, tips"),
    ],
)
def test_wrong_labels_are_one_sentence(tmp_path, content, words):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(UsageError, match=words):
        read(tmp_path / "a.csv")
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / "none.csv")


@pytest.fixture
def log(tmp_path):
    """Writes rows with these keys and answers; returns the folder."""

    def write(*rows, version=7, key="id"):
        folder = tmp_path / "log"
        folder.mkdir(exist_ok=True)
        lines = ({"logged_version": version, key: each, "logged_prediction": answer} for each, answer in rows)
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"requests-{version}.jsonl").write_text(text)
        return folder

    return write


def test_answers_of_the_version_are_joined(log):
    log((1, [0.9]), version=8)
    folder = log((1, [0.25]), ("2", [0.5]), (3, [0.75]))
    found = join(Logs.of(folder), key="id", version=7, labels={"1": 1.0, "3": 0.0})
    assert found.labels.tolist() == [[1.0], [0.0]]
    assert found.answers.tolist() == [[0.25], [0.75]]
    assert found.without == 1


def test_what_cannot_be_joined_is_one_sentence(log):
    with pytest.raises(UsageError, match=r"No key in .* has a label yet: 1 rows have none"):
        join(Logs.of(log((1, [0.5]))), key="id", version=7, labels={"2": 1.0})
    with pytest.raises(UsageError, match="have no column 'id' to join labels by"):
        join(Logs.of(log((1, [0.5]), key="fare")), key="id", version=7, labels={"1": 1.0})
    with pytest.raises(UsageError, match="differ in length"):
        join(Logs.of(log((1, {"a": 1}), (2, [0.5]))), key="id", version=7, labels={"1": 1.0, "2": 1.0})
    for answer in ([[0.1], [0.2]], []):
        with pytest.raises(UsageError, match="are not one or several numbers a row"):
            join(Logs.of(log((1, answer))), key="id", version=7, labels={"1": 1.0})
    folder = log()
    (folder / "requests-7.jsonl").write_text('{"logged_version": 7, "id": 1}\n')
    with pytest.raises(UsageError, match="have no column logged_prediction, so no metric can be computed"):
        join(Logs.of(folder), key="id", version=7, labels={"1": 1.0})


def test_answers_that_are_no_number_are_counted(log):
    folder = log((1, [0.25]), (2, [None]), (3, None))
    found = join(Logs.of(folder), key="id", version=7, labels={"1": 1.0, "2": 0.0, "3": 0.0})
    assert found.not_finite == 2


def test_row_that_was_logged_again_counts_once(log):
    """As of a request that was repeated, or a file that is predicted every day."""
    logs = Logs.of(log(("a", [0.1]), ("b", [0.2]), ("a", [0.3]), ("c", [0.4]), (7, [0.5]), (7.0, [0.6])))
    labels = {"a": 1.0, "b": 0.0, "7": 1.0}
    found = join(logs, key="id", version=7, labels=labels)
    assert (found.answers[:, 0].tolist(), found.labels[:, 0].tolist()) == ([0.3, 0.2, 0.6], [1.0, 0.0, 1.0])
    assert (found.without, found.left_out_counts) == (1, {AGAIN: 2})
    left_out_counts = Counter()
    [by_row] = labels_of_rows(logs, key="id", labels=labels, left_out_counts=left_out_counts).values()
    assert [str(label) for label in by_row] == ["nan", "0.0", "1.0", "nan", "nan", "1.0"]
    assert left_out_counts == {AGAIN: 2}


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_last_row_of_a_key_is_that_of_the_latest_time_whichever_file_it_is_in(tmp_path, suffix):
    """Two servers write files at once: the file that was begun first may have the later row."""
    times = ["2026-11-24T18:00:00.000+00:00", "2026-11-24T14:00:00+01:00", "2026-11-24T13:00:00Z"]
    for number, (at, answer) in enumerate(zip(times, (0.9, 0.1, 0.2), strict=True)):
        row = {"logged_at": at, "logged_version": 7, "id": "a", "logged_prediction": [answer]}
        file = tmp_path / f"requests-{number}{suffix}"
        if suffix == ".jsonl":
            file.write_text(json.dumps(row) + "\n")
        else:
            pq.write_table(pa.Table.from_pylist([row]), file)
    logs, left_out_counts = Logs.of(tmp_path), Counter()
    assert join(logs, key="id", version=7, labels={"a": 1.0}).answers.tolist() == [[0.9]]
    found = labels_of_rows(logs, key="id", labels={"a": 1.0}, left_out_counts=left_out_counts).values()
    assert [str(label) for by_row in found for label in by_row] == ["1.0", "nan", "nan"]
    assert left_out_counts == {AGAIN: 2}


@pytest.mark.parametrize("times", [pa.timestamp("us", "Mars/Base"), pa.timestamp("ns"), pa.timestamp("s")])
def test_times_of_other_servers_that_python_cannot_represent_keep_no_row_out(tmp_path, times):
    at = pa.array([2**40, 2**40 + 1]).cast(times)
    columns = {"id": ["a", "a"], "logged_version": [7, 7], "logged_prediction": [[0.1], [0.9]]}
    pq.write_table(pa.table({**columns, "logged_at": at}), tmp_path / "requests-0.parquet")
    assert join(Logs.of(tmp_path), key="id", version=7, labels={"a": 1.0}).answers.tolist() == [[0.9]]


def test_row_without_an_answer_is_left_out_and_not_taken_for_nan(log):
    folder = log((1, [0.25]), (2, None))
    (folder / "others.jsonl").write_text('{"logged_version": 7, "id": 3}\n{"logged_version": 7, "id": 4}\n')
    found = join(Logs.of(folder), key="id", version=7, labels={"1": 1.0, "2": 0.0, "3": 0.0})
    assert (len(found.labels), found.not_finite, found.without) == (2, 1, 1)
    assert found.left_out_counts == {NO_ANSWER: 1}


def test_row_with_an_empty_key_has_no_label(tmp_path, log):
    (tmp_path / "a.csv").write_text("id,label\n,1\na,0\n")
    assert read(tmp_path / "a.csv") == {"a": 0.0}
    assert join(Logs.of(log(("", [0.5]), ("a", [0.2]))), key="id", version=7, labels={"a": 0.0}).without == 1


def test_keys_that_the_model_s_float32_has_rounded_are_refused(log):
    """20,000,001 and 20,000,000 are one float32, so that one row would get the other's label."""
    logs, labels = Logs.of(log((20_000_000.0, [0.5]))), {"20000000": 1.0, "20000001": 0.0}
    with pytest.raises(
        UsageError, match=r"keys id in .*, such as 20000000, are rounded: .* to 16,777,216 only"
    ):
        join(logs, key="id", version=7, labels=labels)
    with pytest.raises(UsageError, match="are rounded"):
        labels_of_rows(logs, key="id", labels=labels, left_out_counts=Counter())


def test_keys_that_a_float32_holds_are_joined_where_none_of_many_labels_has_another(log):
    """All numbers may be even, as those of the few rows that were logged; 20 labels are not by chance."""
    logs = Logs.of(log((20_000_000.0, [0.5])))
    many = {str(20_000_000 + 2 * row): 1.0 for row in range(20)} | {"a": 0.0, "": 0.0}
    assert len(join(logs, key="id", version=7, labels=many).labels) == 1
    few = dict(list(many.items())[1:]) | {"20000000": 1.0, "20000002": 0.0}
    assert len(join(logs, key="id", version=7, labels=few).labels) == 1
    few.pop("20000004")
    with pytest.raises(UsageError, match=r"may be rounded: .* 19 labels are too few to tell"):
        join(logs, key="id", version=7, labels=few)
    with pytest.raises(UsageError, match=r"No key in .* has a label yet"):  # none that could be another's
        join(logs, key="id", version=7, labels={"7": 1.0})


@pytest.mark.parametrize(
    "keys",
    [
        (20_000_000.0, 20_000_001.0),
        (20_000_000,),
        (16_777_215.0,),
        ("20000000.0",),
        (None, 20_000_000),
        (30_000_001, 20_000_000.0),  # a client may send a fraction where all others send whole numbers
    ],
)
def test_keys_with_all_their_digits_are_joined(log, keys):
    labels = {"20000000": 1.0, "16777215": 0.0}
    assert (
        len(join(Logs.of(log(*((key, [0.5]) for key in keys))), key="id", version=7, labels=labels).labels)
        == 1
    )


def test_keys_of_one_version_say_nothing_of_those_that_another_has_rounded(tmp_path):
    file, labels = tmp_path / "a.jsonl", {"20000000": 1.0, "20000001": 0.0, "30000001": 0.0}
    file.write_text('{"logged_version": 6, "id": 30000001}\n{"logged_version": 7, "id": 20000000.0}\n')
    with pytest.raises(UsageError, match="such as 20000000, are rounded"):
        labels_of_rows(Logs.of(tmp_path), key="id", labels=labels, left_out_counts=Counter())


def test_csv_is_never_in_memory_as_a_whole(tmp_path):
    file = tmp_path / "labels.csv.gz"
    piece = gzip.compress((b"k" * 10_000 + b",1\n") * 1_000)
    file.write_bytes(gzip.compress(b"id,y\n") + 30 * piece)
    before = pa.total_allocated_bytes()
    rows = iter(late_labels._batches(file, ["id", "y"]))
    assert next(rows).num_rows
    # Arrow may have read ahead by now: up to 32 MB, and some for each core.
    assert pa.total_allocated_bytes() - before < 200_000_000, "of 300 MB"


def test_parquet_of_which_another_column_is_nested_a_thousandfold_is_refused(tmp_path):
    # Arrow does not write such a file. Its metadata in Thrift: 1,004 nodes, three of them columns.
    root, group = b"H\1s\x15\6\0", b"5\2\x18\1a\x15\2\0"
    key, label, leaf = (b"\x15\2%\2\x18" + name + b"\0" for name in (b"\2id", b"\1y", b"\1b"))
    metadata = b"\x15\2\x19\xfc\xec\7" + root + key + label + 1000 * group + leaf + b"\x16\0\x19\x0c\0"
    file = tmp_path / "deep.parquet"
    file.write_bytes(b"PAR1" + metadata + len(metadata).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(UsageError, match=r"deep\.parquet cannot be read: maximum recursion depth"):
        read_labels(file, key="id", label="y", classes=())
