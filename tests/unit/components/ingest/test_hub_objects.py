"""Files of data sets on the Hub, listed and downloaded; against a double on loopback."""

from pathlib import Path

import pytest
from hub_double import LARGE_BYTES, TOKEN

from slipway.components.ingest import hub_client, hub_objects
from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.hub_address import DataSet
from slipway.components.ingest.hub_objects import download, list_objects, pinned
from slipway.components.ingest.storage import StoredFile, fetched, find_files, list_files

LARGE = bytes(range(256)) * (LARGE_BYTES // 50)
FILES = {
    "README.md": b"# data",
    "data/train-0.parquet": LARGE,
    "data/train-1.parquet": LARGE[::-1],
    "data/eval.csv": b"a\n1\n",
    "data/de/more.csv": b"a\n2\n",
    "6 ü#?.csv": b"a\n3\n",
    "empty.csv": b"",
}


@pytest.fixture
def top(hub):
    """The address of a data set, and of its commit."""
    commit = hub.commit("o/n", FILES)
    return "hf://datasets/o/n", f"hf://datasets/o/n@{commit}"


def test_revision_is_looked_up_once_for_all_files_of_a_pattern(hub, top):
    files = list_objects(f"{top[0]}/data/*.parquet")
    assert [file.name for file in files] == [f"{top[1]}/data/train-{i}.parquet" for i in (0, 1)]
    assert [path.split("/")[5] for path, _, _ in hub.requests] == ["revision", "tree", "tree"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("data/*.parquet", ["data/train-0.parquet", "data/train-1.parquet"]),
        ("data/train-[1-9].parquet", ["data/train-1.parquet"]),
        ("data/eval.csv", ["data/eval.csv"]),
        ("*/*/*.csv", ["data/de/more.csv"]),
        ("*.csv", ["6 ü#?.csv", "empty.csv"]),
        ("d*/*.csv", ["data/eval.csv"]),
        ("data/none.csv", []),
        ("nothing/*.csv", []),
        ("data", []),
    ],
)
def test_files_are_matched_level_by_level(top, pattern, names):
    found = [file.name.removeprefix(f"{top[1]}/") for file in find_files(f"{top[1]}/{pattern}")]
    assert found == names


def test_branch_and_commit_list_the_same_files(top):
    assert list_objects(f"{top[0]}@main/data/*") == list_objects(f"{top[1]}/data/*")


def test_special_branch_with_slashes_is_asked_for_by_its_whole_name(hub):
    commit = hub.commit("o/n", {"default/train/0.parquet": LARGE}, "refs/convert/parquet")
    [file] = list_objects("hf://datasets/o/n@refs/convert/parquet/default/train/*.parquet")
    assert file.name == f"hf://datasets/o/n@{commit}/default/train/0.parquet"


def test_pattern_without_a_file_is_named(top):
    with pytest.raises(FileError, match=r"hf://datasets/o/n/\*\.json matches no file"):
        list_files(f"{top[0]}/*.json")


def test_commit_needs_no_question(hub, top):
    hub.requests.clear()
    data_set = DataSet("o/n", top[1].partition("@")[2])
    assert pinned(data_set) is data_set
    assert hub.requests == []


@pytest.mark.parametrize("name", ["data/train-0.parquet", "data/eval.csv", "6 ü#?.csv", "empty.csv"])
def test_file_arrives_whole(top, name):
    [file] = [
        each
        for each in list_files(f"{top[0]}/*") + list_files(f"{top[0]}/data/*")
        if each.name.endswith(name)
    ]
    with fetched(file) as here:
        assert here.name == file.name
        assert here.path.suffix == Path(name).suffix
        assert here.path.read_bytes() == FILES[name]


def test_listed_files_are_those_of_their_commit_after_the_branch_has_moved(hub, top, tmp_path):
    [file] = list_objects(f"{top[0]}/data/eval.csv")
    hub.commit("o/n", {"data/eval.csv": b"a\n9\n"})
    download(file, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == FILES["data/eval.csv"]


def test_token_is_not_told_to_the_server_of_large_files(hub, top, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    [file] = list_objects(f"{top[0]}/data/train-0.parquet")
    download(file, tmp_path / "x")
    assert {token for _, token, _ in hub.requests} == {f"Bearer {TOKEN}"}
    assert [token for _, token, _ in hub.downloads] == [""]


def test_token_stays_with_a_mirror_whose_links_lead_to_the_hub(hub, top):
    hub.linked_address = "https://the-hub.invalid"
    assert len(list_objects(f"{top[0]}/data/*.parquet")) == 2


def test_download_goes_on_where_it_broke_off(hub, top, tmp_path, monkeypatch):
    monkeypatch.setattr(hub_objects, "_CHUNK_BYTES", 256)
    [file] = list_objects(f"{top[0]}/data/train-0.parquet")
    hub.spoil("truncate", "truncate")
    download(file, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == LARGE
    half = len(LARGE) // 2
    assert [part for _, _, part in hub.downloads] == ["", f"bytes={half}-", f"bytes={half + half // 2}-"]


def test_server_that_knows_no_parts_sends_all_again(hub, top, tmp_path):
    [file] = list_objects(f"{top[0]}/data/train-0.parquet")
    hub.spoil("truncate", "whole")
    download(file, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == LARGE


@pytest.mark.parametrize("name", ["data/train-0.parquet", "data/eval.csv"])
def test_one_wrong_bit_is_noticed(hub, top, tmp_path, name):
    [file] = list_objects(f"{top[0]}/{name}")
    hub.spoil("corrupt")
    with pytest.raises(FileError, match=f"{name} was corrupted on the way"):
        download(file, tmp_path / "x")


@pytest.mark.parametrize(("listed", "arrived"), [(3, "more"), (5, "4")])
def test_file_of_another_size_than_listed_is_refused(top, tmp_path, listed, arrived):
    [file] = list_objects(f"{top[0]}/data/eval.csv")
    with pytest.raises(FileError, match=f"has {listed} bytes, but {arrived} arrived"):
        download(StoredFile(file.name, listed, checksum=file.checksum), tmp_path / "x")


def test_gated_data_set_says_where_to_agree(hub, top, tmp_path):
    [file] = list_objects(f"{top[0]}/data/eval.csv")
    hub.data_sets["o/n"].is_gated = True
    with pytest.raises(FileError, match="hf://datasets/o/n is gated") as caught:
        download(file, tmp_path / "x")
    assert f"agree to them on {hub.address}/datasets/o/n" in caught.value.hint


def test_file_that_is_gone_since_it_was_listed_is_named(hub, top, tmp_path):
    [file] = list_objects(f"{top[0]}/data/eval.csv")
    del hub.data_sets["o/n"].commits[top[1].partition("@")[2]]["data/eval.csv"]
    with pytest.raises(FileError, match=r"data/eval\.csv was deleted after it was listed"):
        download(file, tmp_path / "x")


def test_disk_that_takes_no_file_is_named_rather_than_the_hub(top):
    [file] = list_objects(f"{top[0]}/data/eval.csv")
    with pytest.raises(FileError, match=r"/dev/full cannot be written: .*No space left") as caught:
        download(file, Path("/dev/full"))
    assert caught.value.hint == "check its disk"


@pytest.mark.parametrize(
    "page",
    [
        {"entries": []},
        [{"type": "file"}],
        ["a.csv"],
        [{"type": "file", "path": "a.csv", "size": "4", "oid": "0" * 40}],
        [{"type": "file", "path": "a.csv", "size": 4, "oid": "0" * 39}],
        [{"type": "file", "path": "../a.csv", "size": 4, "oid": "0" * 40}],
        [{"type": "file", "path": "a.csv", "size": 4, "oid": "0" * 40, "lfs": {"oid": "0" * 40}}],
        [{"type": "file", "path": 1, "size": 4, "oid": "0" * 40}],
        [{"type": "file", "path": "\ud800.csv", "size": 4, "oid": "0" * 40}],
        [{"type": "file", "path": "a.csv", "size": -1, "oid": "0" * 40}],
    ],
)
def test_listing_that_no_hub_would_give_is_told(top, monkeypatch, page):
    monkeypatch.setattr(hub_client, "document", lambda *_: (page, ""))
    with pytest.raises(FileError, match="answers something else than the Hub's API would"):
        list_objects(f"{top[1]}/*.csv")


def test_listing_whose_pages_never_end_is_told(top, monkeypatch):
    monkeypatch.setattr(hub_client, "document", lambda *_: ([], "cursor=1"))
    with pytest.raises(FileError, match="answers something else than the Hub's API would"):
        list_objects(f"{top[1]}/*.csv")


def test_address_of_another_form_is_an_error_of_the_file():
    with pytest.raises(FileError, match="must be hf://datasets/OWNER/NAME@REVISION/PATH"):
        list_objects("hf://o/n.csv")
