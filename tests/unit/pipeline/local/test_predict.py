"""What `predict` refuses before it loads a model, and what it says when it is done."""

from pathlib import Path

import pytest

from pipeline.config import WorkloadConfig
from pipeline.errors import UsageError
from pipeline.local.predict import Predicted, predict


def make_config(**data):
    return WorkloadConfig.model_validate(
        {
            "name": "toy",
            "data": {"source": "x.csv", "label": "tips", **data},
            "transform": {"preprocessing_fn": "w.f.g"},
            "train": {"model": "w.m.b"},
        }
    )


@pytest.fixture
def refusal(tmp_path):
    """The error of `predict` with a version that would be refused when it is loaded."""
    version = tmp_path / "output/serving/toy/1"
    version.mkdir(parents=True)
    (version / "saved_model.pb").write_bytes(b"no model")
    rows = tmp_path / "rows.csv"
    rows.write_text("fare\n1\n", encoding="utf-8")

    def call(config=None, *, source=rows, to=None):
        options = {"version": None, "file_format": None, "beam_args": []}
        with pytest.raises(UsageError) as caught:
            predict(config or make_config(), tmp_path / "output", source=str(source), to=to, **options)
        return caught.value

    return call


@pytest.mark.parametrize(
    ("name", "rule"), [("rows.csv/x", "Not a directory"), ("n" * 300, "File name too long")]
)
def test_folder_that_cannot_be_made_is_refused_in_words_before_the_model_is_loaded(
    refusal, tmp_path, name, rule
):
    error = refusal(to=tmp_path / name)
    assert error.message == f"{tmp_path / name} cannot be made a folder for the predictions: {rule}."
    assert "--to" in error.hint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output", "rows.csv"]


@pytest.mark.parametrize(
    ("rejected", "words"),
    [({"not a number": 1}, "1 row rejected: 1 "), ({"x": 1, "y": 2}, "3 rows rejected: 1 x")],
)
def test_rejected_rows_are_told_in_their_number(rejected, words):
    done = Predicted(Path("out"), {"predicted": 1, "version": "7", "rejected": rejected, "not_finite": 0})
    first, second, _ = done.text().splitlines()
    assert first == "1 row predicted by version 7."
    assert second.startswith(words)


def test_flat_folder_of_images_is_refused_as_the_images_by_name_are(refusal, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"png")
    config = make_config(format="images")
    by_folder, by_name = refusal(config, source=folder), refusal(config, source=folder / "*.png")
    assert by_folder.message.startswith("images files cannot be predicted from")
    assert "Parquet" in by_folder.hint
    assert (by_folder.message, by_folder.hint) == (by_name.message, by_name.hint)
    assert by_folder.exit_code == 2


def test_folder_without_tables_is_told_by_what_was_looked_for(refusal, tmp_path):
    (tmp_path / "empty").mkdir()
    assert refusal(source=tmp_path / "empty").message == f"{tmp_path}/empty/*.csv matches no file"


def test_rows_with_no_number_for_an_answer_are_told(tmp_path):
    summary = {"version": 1, "predicted": 7, "not_finite": 2, "rejected": {}}
    assert "2 of them have no number for an answer" in Predicted(tmp_path, summary).text()
    assert "no number" not in Predicted(tmp_path, {**summary, "not_finite": 0}).text()
