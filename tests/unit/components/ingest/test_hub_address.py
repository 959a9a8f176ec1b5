"""Addresses of data sets on the Hugging Face Hub."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.ingest.hub_address import DataSet, data_set_and_path, without_revision

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("address", "data_set", "path"),
    [
        ("hf://datasets/o/n", DataSet("o/n", "main"), ""),
        ("hf://datasets/o/n/", DataSet("o/n", "main"), ""),
        ("hf://datasets/o/n.v-1_x/a/*.parquet", DataSet("o/n.v-1_x", "main"), "a/*.parquet"),
        ("hf://datasets/o/n@v1.0/a.csv", DataSet("o/n", "v1.0"), "a.csv"),
        ("hf://datasets/o/n@feature%2Fx/a.csv", DataSet("o/n", "feature/x"), "a.csv"),
        ("hf://datasets/o/n@refs/convert/parquet/a/b", DataSet("o/n", "refs/convert/parquet"), "a/b"),
        ("hf://datasets/o/n@refs/pr/12", DataSet("o/n", "refs/pr/12"), ""),
        (f"hf://datasets/o/n@{COMMIT}/a@b.csv", DataSet("o/n", COMMIT), "a@b.csv"),
    ],
)
def test_address_has_a_data_set_a_revision_and_a_path(address, data_set, path):
    assert data_set_and_path(address) == (data_set, path)
    assert data_set_and_path(f"{data_set.address}/{path}") == (data_set, path)


@pytest.mark.parametrize(
    "address",
    [
        "hf://datasets/n",
        "hf://o/n/a.csv",
        "hf://models/o/n/a.csv",
        "hf://datasets/../n/a.csv",
        "hf://datasets/o/n@/a.csv",
        "hf://datasets/o/n@ma*n/a.csv",
        "hf://datasets/o/n@a b/a.csv",
        "hf://datasets/o/n@a@b/a.csv",
        "hf://datasets/o n/n/a.csv",
        "hf://datasets/ö/n/a.csv",
        "HF://datasets/o/n/a.csv",
    ],
)
def test_address_of_another_form_is_refused_with_the_form(address):
    with pytest.raises(ComponentError, match="must be hf://datasets/OWNER/NAME@REVISION/PATH"):
        data_set_and_path(address)


def test_only_the_whole_id_of_a_commit_pins():
    assert DataSet("o/n", COMMIT).is_pinned
    assert DataSet("o/n").at(COMMIT) == DataSet("o/n", COMMIT)
    assert not any(
        DataSet("o/n", each).is_pinned for each in ("main", COMMIT[:12], COMMIT.upper(), f"{COMMIT}0")
    )


def test_file_has_the_same_name_in_all_commits():
    assert without_revision(f"hf://datasets/o/n@{COMMIT}/d/a.csv") == "hf://datasets/o/n/d/a.csv"
    assert without_revision("hf://datasets/o/n@v1") == "hf://datasets/o/n"
