"""A file of weights is found, copied where it lies elsewhere, and refused where it is not the one."""

import socket

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer import pretrained
from slipway.components.trainer.pretrained import local_file
from slipway.components.trainer.settings.pretrained import sha256_of


@pytest.fixture
def weights(tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained, "PROJECT_ROOT", tmp_path)
    file = tmp_path / "before.h5"
    file.write_bytes(b"weights")
    return {"path": "before.h5", "sha256": sha256_of(file)}


def test_file_of_the_project_is_checked_and_used_where_it_is(weights, tmp_path):
    assert local_file(weights, folder=tmp_path / "job") == tmp_path / "before.h5"
    assert local_file(None, folder=tmp_path) is None


def test_another_content_or_no_file_is_refused_in_words(weights, tmp_path):
    with pytest.raises(ComponentError, match=f"before.h5 has the SHA-256 {weights['sha256']}, not 00"):
        local_file({**weights, "sha256": "00"}, folder=tmp_path)
    with pytest.raises(ComponentError, match=r"train\.pretrained: gone\.h5 is not there"):
        local_file({**weights, "path": "gone.h5"}, folder=tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ComponentError, match=r"folder cannot be read: .*directory"):
        local_file({**weights, "path": "folder"}, folder=tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_object_is_copied_with_its_suffix(weights, tmp_path):
    import tensorflow as tf

    path = f"ram:/{tmp_path}/before.weights.h5"  # this test's own: what lies there outlasts it
    with tf.io.gfile.GFile(path, "w") as file:
        file.write("weights")
    found = local_file({**weights, "path": path}, folder=tmp_path)
    name = f"pretrained-{socket.gethostname()}-before.weights.h5"
    assert (found.name, found.read_bytes()) == (name, b"weights")
    with pytest.raises(ComponentError, match=r"ram://bucket/none\.h5 is not there"):
        local_file({**weights, "path": "ram://bucket/none.h5"}, folder=tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == {"before.h5", name}, "no part is left"
