"""The digest of pretrained weights is of the file, or the given one; class weights are keyed by codes."""

import hashlib
from types import SimpleNamespace

import pytest
from taxi_workload import taxi_workload

from slipway.pipeline.config.train import PretrainedConfig
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.wiring import trainer_settings
from slipway.pipeline.wiring.trainer_settings import class_weights, pretrained_weights

OTHER = "0" * 64


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setattr(trainer_settings, "PROJECT_ROOT", tmp_path)

    def call(**given):
        weights = PretrainedConfig(**given) if given else None
        return pretrained_weights(SimpleNamespace(train=SimpleNamespace(pretrained=weights)))

    return call


def test_digest_follows_the_content(settings, tmp_path):
    for content in (b"one", b"another"):
        (tmp_path / "w.h5").write_bytes(content)
        assert settings(path="w.h5") == {"path": "w.h5", "sha256": hashlib.sha256(content).hexdigest()}
    assert settings() is None
    assert settings(path="gs://b/w.h5", sha256=OTHER) == {"path": "gs://b/w.h5", "sha256": OTHER}


def test_file_that_is_gone_or_another_is_refused(settings, tmp_path):
    with pytest.raises(ConfigError, match=r"train.pretrained.path = 'w.h5': cannot be read: No such file"):
        settings(path="w.h5")
    (tmp_path / "w.h5").write_bytes(b"one")
    with pytest.raises(ConfigError, match=f"w.h5 has the SHA-256 7692.*, not {OTHER}"):
        settings(path="w.h5", sha256=OTHER)


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ((), None),
        (("train.class_weights=balanced",), "balanced"),
        (("train.class_weights={'1': 3, '0': 0.5}",), {"1": 3.0, "0": 0.5}),
        (("train.class_weights={1: 3}",), {"1": 3.0}),
        (("transform.classes=['no', 'yes']", "train.class_weights={'yes': 3}"), {"1": 3.0}),
    ],
)
def test_names_of_classes_become_their_codes(sets, expected):
    assert class_weights(taxi_workload(*sets)) == expected
