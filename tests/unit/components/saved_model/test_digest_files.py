"""Which files of a model its digest covers."""

import pytest

from slipway.components.saved_model.digest_files import model_digest


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "variables/variables.data-00000-of-00001").write_bytes(bytes(1000))
    return folder


def test_one_turned_bit_of_the_variables_gives_another_digest(model):
    before = model_digest(str(model))
    path = model / "variables/variables.data-00000-of-00001"
    path.write_bytes(bytes(500) + b"\1" + bytes(499))
    assert model_digest(str(model)) != before
    path.write_bytes(bytes(1000))
    assert model_digest(str(model)) == before


def test_digest_covers_file_names_but_not_the_files_that_a_push_adds(model):
    before = model_digest(str(model))
    (model / "manifest.json").write_text("{}", encoding="utf-8")
    (model / "MODEL_CARD.md").write_text("card", encoding="utf-8")
    assert model_digest(str(model)) == before
    (model / "saved_model.pb").rename(model / "saved_model.pbtxt")
    assert model_digest(str(model)) != before
