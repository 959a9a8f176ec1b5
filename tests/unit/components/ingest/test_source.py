"""Valid data sources, and files that are refused before anything runs."""

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.components.ingest.source import Source, SourceError, Sources, resolve_source, resolve_sources
from slipway.components.ingest.storage import find_files


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An importable package whose import would fail, with a data file inside and a secret outside."""
    folder = tmp_path / "site/farm"
    (folder / "data").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "data/eggs.csv").write_text("eggs\n1\n")
    (tmp_path / "site/secret.csv").write_text("key\n1\n")
    (tmp_path / "site/single.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return folder


@pytest.mark.parametrize(
    ("source", "directory", "pattern", "files"),
    [
        ("data/a.csv", "data", "a.csv", ["data/a.csv"]),
        ("data", "data", "*.csv", ["data/a.csv", "data/b.csv"]),
        ("data/", "data", "*.csv", ["data/a.csv", "data/b.csv"]),
        ("data/[ab].csv", "data", "[ab].csv", ["data/a.csv", "data/b.csv"]),
        ("data/?.csv", "data", "?.csv", ["data/a.csv", "data/b.csv"]),
        ("months/*/*.csv", "months", "*/*.csv", ["months/2024-01/x.csv", "months/2024-02/y.csv"]),
        ("months/2024-0*/x.csv", "months", "2024-0*/x.csv", ["months/2024-01/x.csv"]),
    ],
)
def test_source_is_a_file_a_directory_or_a_glob(trips, source, directory, pattern, files):
    expected = Source(trips / directory, pattern, tuple(trips / file for file in files))
    assert resolve_source(source, root=trips) == expected


def test_absolute_path_does_not_depend_on_the_root(trips):
    assert resolve_source(str(trips / "data/a.csv"), root=Path("/nowhere")).files == (trips / "data/a.csv",)


def test_file_whose_name_looks_like_a_glob_is_matched_literally(trips):
    odd = trips / "data/a[1]*.csv"
    odd.write_text("x\n1\n")
    source = resolve_source("data/a[1]*.csv", root=trips)
    assert source.files == (odd,)
    assert tuple(source.directory.glob(source.pattern)) == (odd,)


@pytest.mark.parametrize("name", ["odd[1]/a.csv", "odd*/a.csv", "odd\\x/a.csv", "data/a\\b.csv"])
def test_name_that_tfx_would_take_for_a_pattern_is_refused(trips, name):
    (trips / name).parent.mkdir(exist_ok=True)
    (trips / name).write_text("x\n1\n")
    with pytest.raises(SourceError, match="for a pattern"):
        resolve_source(name, root=trips)


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        ("data/aa.csv", "data/aa.csv does not exist; nearest: a.csv", "relative to the project's root"),
        ("nowhere/x.csv", "nowhere/x.csv does not exist", "looked for"),
        ("data/*.parquet", "matches no file: no *.parquet in", "there are a.csv, b.csv, notes.txt"),
        ("nowhere/*.csv", "nowhere does not exist", "looked for"),
        ("data/a.csv/*.csv", "data/a.csv is not a folder", "looked for"),
        ("months", "matches no file: no *.csv in", "there are 2024-01, 2024-02"),
        ("data/**/a.csv", "'**' is not supported", "one '*' for each level"),
        ("gs://bucket/a.csv", "gs://bucket/a.csv is not on this machine", "copy it"),
        ("file:///etc/passwd", "is not on this machine", "copy it"),
        ("a\0b", "'a\\x00b' does not exist", "looked for"),
        ("\x1b]red", "'\\x1b]red' does not exist", "looked for"),
        ("\x1b[31mred", "'\\x1b[31mred' matches no file: no '\\x1b[31mred'", "there are data, months"),
        ("x" * 5000, "cannot be read: File name too long", ""),
    ],
)
def test_source_without_files_is_refused_with_the_remedy(trips, source, message, hint):
    with pytest.raises(SourceError) as caught:
        resolve_source(source, root=trips)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert "\x1b" not in str(caught.value)


def test_link_that_leads_nowhere_is_refused_as_such(trips):
    (trips / "data/new.csv").symlink_to("gone.csv")
    with pytest.raises(SourceError, match=r"new.csv does not exist: it is a link to gone.csv, which leads"):
        resolve_source("data/new.csv", root=trips)


def test_empty_directory_is_refused(tmp_path):
    with pytest.raises(SourceError, match="the folder is empty"):
        resolve_source(".", root=tmp_path)


@pytest.mark.parametrize(
    "source", ["months/{YYYY}-{MM}/*.csv", "{YYYY}/{YYYY}-{MM}-{DD}.csv", "{SPAN}/{SPAN}/x"]
)
def test_spans_that_tfx_cannot_read_are_refused_before_a_run(trips, source):
    for folder in ("", "gs://bucket/"):
        with pytest.raises(SourceError, match=r"spans are \{SPAN\}, or \{YYYY\}, .* together, each once"):
            resolve_sources({"": folder + source}, root=trips)


@pytest.mark.parametrize("path", ["data/eggs.csv", "data", "data/*.csv"])
def test_package_source_is_found_without_importing_the_package(package, path):
    source = resolve_source(f"package://farm/{path}", root=Path("/nowhere"))
    assert source.files == (package / "data/eggs.csv",)
    assert "farm" not in sys.modules


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("package://farm", "must be package://PACKAGE/PATH"),
        ("package://farm/", "must be package://PACKAGE/PATH"),
        ("package:///etc/passwd", "must be package://PACKAGE/PATH"),
        ("package://../secret.csv", "must be package://PACKAGE/PATH"),
        ("package://farm/../secret.csv", "leads out of its package"),
        ("package://farm/data/../../secret.csv", "leads out of its package"),
        ("package://farm//etc/passwd", "leads out of its package"),
        ("package://farm/link.csv", "leads out of its package"),
        ("package://farm/*.csv", "leads out of its package"),
        ("package://frm/data/eggs.csv", "no package 'frm' is installed"),
        ("package://single/data.csv", "no package 'single' is installed"),
        ("package://sys/data.csv", "no package 'sys' is installed"),
        ("package://__main__/data.csv", "is installed"),
        ("package://farm/data/egs.csv", "nearest: eggs.csv"),
    ],
)
def test_package_source_stays_inside_an_installed_package(package, source, message):
    (package / "link.csv").symlink_to(package.parent / "secret.csv")
    with pytest.raises(SourceError) as caught:
        resolve_source(source, root=package.parent)
    assert message in caught.value.message


@given(st.text(max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_any_text_as_source_is_found_or_refused(trips, source):
    try:
        found = resolve_source(source, root=trips)
    except SourceError:
        return
    assert found.files


def test_source_survives_the_way_to_another_process(trips):
    source = resolve_source("data", root=trips)
    assert Source.from_json(json.loads(json.dumps(source.to_json()))) == source


@pytest.mark.parametrize(
    ("file_format", "names", "expected"),
    [
        ("csv", ["a.csv", "b.csv.bak", "c.csv.gz.md5", ".d.csv.gz"], "*.csv"),
        ("csv", ["b.csv.gz"], "*.csv.*"),
        ("jsonl", ["a.jsonl"], "*.jsonl"),
        ("tfrecord", ["data_tfrecord-00000-of-00001.gz"], "*"),
        ("images", ["cat/1.png", "dog/2.png"], "*/*"),
        ("images", ["cat/1.png", "dog/2.PNG", "loose.jpg"], "*/*"),
        ("parquet", ["a.parquet", "_metadata", ".a.parquet.crc", "b.parquet.md5"], "*.parquet"),
    ],
)
def test_folder_stands_for_its_files_of_the_format(tmp_path, file_format, names, expected):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert resolve_source(".", root=tmp_path, file_format=file_format).pattern == expected


@pytest.mark.parametrize(
    ("file_format", "names", "message"),
    [
        (
            "csv",
            ["a.csv", "b.csv.gz"],
            r"two kinds, such as a\.csv and b\.csv\.gz, of which a folder stands for one",
        ),
        ("csv", ["a.csv", "B.CSV"], r"such as a\.csv and B\.CSV"),
        ("csv", ["a.CSV", "b.csv.zst"], r"such as b\.csv\.zst and a\.CSV"),
        ("jsonl", ["a.jsonl", "b.jsonl.bz2"], r"such as a\.jsonl and b\.jsonl\.bz2"),
        ("tfrecord", ["a.tfrecord", "b.tfrecord-00000-of-00002.gz"], "such as a"),
        ("parquet", ["a.parquet", "B.PARQUET"], r"such as a\.parquet and B\.PARQUET"),
        ("npz", ["a.npz", "B.NPZ"], r"such as a\.npz and B\.NPZ"),
    ],
)
def test_folder_with_files_that_would_be_left_out_is_refused(tmp_path, file_format, names, message):
    for name in names:
        (tmp_path / name).write_text("x")
    with pytest.raises(SourceError, match=message) as caught:
        resolve_source(".", root=tmp_path, file_format=file_format)
    assert "* for all of them" in caught.value.hint


@pytest.mark.parametrize("names", [["a.csv", "B.CSV", "c.csv.gz"], ["A.CSV"], ["a.csv", "b.csv.gz"]])
def test_pattern_that_is_advised_for_all_files_of_a_folder_takes_them_all(tmp_path, names):
    for name in names:
        (tmp_path / name).write_text("a\n1\n")
    with pytest.raises(SourceError) as caught:
        resolve_source(str(tmp_path), root=tmp_path)
    pattern = caught.value.hint.split()[1]
    found = resolve_source(pattern, root=tmp_path)
    assert {file.name for file in found.files} == set(names)
    assert {file.name.rpartition("/")[2] for file in find_files(pattern)} == set(names)


def test_hidden_files_are_left_out_unless_they_are_named(trips):
    for name in ("data/._a.csv", "data/_SUCCESS", "data/_metadata.csv", "months/_temporary/x.csv"):
        (trips / name).parent.mkdir(exist_ok=True)
        (trips / name).write_text("other\n1\n")
    assert [file.name for file in resolve_source("data", root=trips).files] == ["a.csv", "b.csv"]
    assert [file.name for file in resolve_source("data/*.csv", root=trips).files] == ["a.csv", "b.csv"]
    assert [file.parent.name for file in resolve_source("months/*/x.csv", root=trips).files] == ["2024-01"]
    for named in ("data/_metadata.csv", "data/_*.csv"):
        assert [file.name for file in resolve_source(named, root=trips).files] == ["_metadata.csv"]
    with pytest.raises(SourceError, match="matches no file") as caught:
        resolve_source("months/_temporary/*SS", root=trips)
    (trips / "months/_temporary/_SUCCESS").touch()
    with pytest.raises(SourceError, match="matches no file") as caught:
        resolve_source("months/_temporary/*SS", root=trips)
    assert "names that begin with '.' or '_' are left out" in caught.value.hint


def test_images_of_cameras_are_not_hidden(tmp_path):
    for name in ("_noise/_DSC0001.JPG", "cat/1.png", "cat/.2.png", "cat/_classes.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    found = resolve_source(".", root=tmp_path, file_format="images").files
    assert [file.name for file in found] == ["_DSC0001.JPG", "1.png"]


def test_spans_and_versions_match_anything_and_stay_in_the_pattern(trips):
    source = resolve_source("months/{SPAN}-{VERSION}/*.csv", root=trips)
    assert (source.pattern, len(source.files)) == ("{SPAN}-{VERSION}/*.csv", 2)
    source = resolve_source("months/2024-{SPAN:2}/x.csv", root=trips)
    assert (source.directory, source.pattern) == (trips / "months", "2024-{SPAN:2}/x.csv")
    with pytest.raises(SourceError, match="matches no file"):
        resolve_source("months/{SPAN}/z.csv", root=trips)


def test_splits_with_files_of_their_own_share_a_folder(trips):
    found = resolve_sources({"train": "months/2024-01/*.csv", "eval": "data/a.csv"}, root=trips)
    assert found == Sources(
        str(trips),
        {"train": "months/2024-01/*.csv", "eval": "data/a.csv"},
        (trips / "months/2024-01/x.csv", trips / "data/a.csv"),
    )


@pytest.mark.parametrize(
    ("sources", "directory", "patterns"),
    [
        ({"all": "gs://b/d/x.csv"}, "gs://b/d", {"all": "x.csv"}),
        ({"all": "gs://b/d/*/x-?.csv"}, "gs://b/d", {"all": "*/x-?.csv"}),
        ({"all": "gs://b/d/"}, "gs://b/d", {"all": "?*.csv"}),
        ({"all": "gs://b/"}, "gs://b", {"all": "?*.csv"}),
        ({"all": "gs://b/day-{SPAN}/x.csv"}, "gs://b", {"all": "day-{SPAN}/x.csv"}),
        ({"train": "gs://b/a/t.csv", "eval": "gs://b/a/e/*"}, "gs://b/a", {"train": "t.csv", "eval": "e/*"}),
        ({"all": "s3://b/d/*/x-?.csv"}, "s3://b/d", {"all": "*/x-?.csv"}),
        ({"all": "az://b/"}, "az://b", {"all": "?*.csv"}),
        ({"all": "hf://datasets/o/n"}, "hf://datasets/o/n@main", {"all": "?*.csv"}),
        ({"all": "hf://datasets/o/n@v1/d/"}, "hf://datasets/o/n@v1/d", {"all": "?*.csv"}),
        (
            {"all": "hf://datasets/o/n@refs/convert/parquet/*/x-?.csv"},
            "hf://datasets/o/n@refs/convert/parquet",
            {"all": "*/x-?.csv"},
        ),
        (
            {"train": "hf://datasets/o/n/d/t-*", "eval": "hf://datasets/o/n@main/d/e.csv"},
            "hf://datasets/o/n@main/d",
            {"train": "t-*", "eval": "e.csv"},
        ),
    ],
)
def test_object_store_is_left_for_the_run_to_list(sources, directory, patterns):
    assert resolve_sources(sources, root=Path("/nowhere")) == Sources(directory, patterns, ())


@pytest.mark.parametrize(
    ("file_format", "pattern"),
    [("parquet", "?*.parquet"), ("npz", "?*.npz"), ("tfrecord", "?*.tfrecord"), ("images", "*/*")],
)
def test_folder_of_a_store_is_listed_whole_so_that_what_is_left_out_is_told(file_format, pattern):
    found = resolve_sources({"all": "s3://b/d/"}, root=Path("/nowhere"), file_format=file_format)
    assert found.patterns == {"all": pattern}


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"all": "gs://b"}, "must be gs://BUCKET/PATH"),
        ({"all": "gs:///x"}, "must be gs://BUCKET/PATH"),
        ({"train": "gs://a/x", "eval": "gs://b/x"}, "must be in one bucket"),
        ({"train": "gs://a/x", "eval": "local.csv"}, "must be gs://BUCKET/PATH"),
        ({"all": "s3://b"}, "must be gs://BUCKET/PATH, s3://BUCKET/PATH or az://CONTAINER/PATH"),
        ({"train": "gs://a/x", "eval": "s3://a/x"}, "must be in one bucket"),
        ({"train": "hf://datasets/o/n/x", "eval": "hf://datasets/o/n@v1/x"}, "in one bucket or data set"),
        ({"all": "hf://o/n/x.csv"}, r"hf://o/n/x\.csv must be hf://datasets/OWNER/NAME@REVISION/PATH"),
    ],
)
def test_object_store_that_cannot_be_taken_is_refused(sources, message):
    with pytest.raises(SourceError, match=message):
        resolve_sources(sources, root=Path("/nowhere"))


def test_file_whose_name_is_not_utf8_is_named_with_its_bytes(trips):
    os.close(os.open(os.fsencode(trips / "data") + b"/caf\xe9.csv", os.O_CREAT))
    with pytest.raises(
        SourceError, match=r"data/caf\\udce9\.csv': its path holds bytes that are not UTF-8"
    ) as caught:
        resolve_source("data", root=trips)
    assert "rename that file" in caught.value.hint
    assert len(resolve_source("data/[ab].csv", root=trips).files) == 2


def test_pipe_is_called_one(trips):
    os.mkfifo(trips / "data/pipe.csv")
    for source in ("data/pipe.csv", "/dev/null"):
        with pytest.raises(SourceError, match="is a pipe or a device: a source is read more than once"):
            resolve_source(source, root=trips)
