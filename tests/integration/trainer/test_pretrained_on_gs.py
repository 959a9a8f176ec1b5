"""Weights to begin with on gs://: copied by the training, held to their digest, named in the manifest.

External: files, and addresses that need no server, are in tests/unit/components/trainer/test_pretrained.py.
"""

import hashlib
import io
import urllib.request

import h5py
import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.pusher.provenance import collect_provenance
from slipway.pipeline.config import load_workload, read_assignments
from slipway.pipeline.wiring.pushed_versions import about_model
from slipway.pipeline.wiring.trainer_settings import pretrained_weights

pytestmark = [
    pytest.mark.slow,
    pytest.mark.external,
    pytest.mark.usefixtures("forked"),
    pytest.mark.filterwarnings("default"),
]

MODEL = """
import keras

def build_model(features, hyperparameters, pretrained):
    inputs = {name: keras.Input(feature.shape, name=name) for name, feature in features.items()}
    model = keras.Model(inputs, keras.layers.Dense(1)(inputs["x"]))
    if pretrained is not None:
        model.load_weights(pretrained)
    model.compile(optimizer=keras.optimizers.SGD(0.0), loss="mse")
    return model
"""
KERNEL = np.arange(16, dtype="float32").reshape(16, 1)


@pytest.fixture
def stored(gs, tmp_path, monkeypatch):
    """The workload's key for weights that lie in the bucket, which the training reaches."""
    for name, value in gs.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "begun.py").write_text(MODEL)
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        file["layers/dense/vars/0"], file["layers/dense/vars/1"] = KERNEL, [7.0]
    address = (
        f"{gs['STORAGE_EMULATOR_HOST']}/upload/storage/v1/b/bucket/o?uploadType=media&name=begun.weights.h5"
    )
    urllib.request.urlopen(urllib.request.Request(address, content.getvalue()), timeout=60).close()  # noqa: S310
    return {
        "path": "gs://bucket/begun.weights.h5",
        "sha256": hashlib.sha256(content.getvalue()).hexdigest(),
    }


def test_weights_on_gs_are_what_a_training_begins_with_and_the_manifest_has_their_digest(
    stored, train, project
):
    key = f"train.pretrained={{path: {stored['path']}, sha256: {stored['sha256']}}}"
    file = project / "workloads" / "taxi" / "workload.yaml"
    config = load_workload(file, sets=read_assignments([key]), root=project)

    trained = train(model="begun.build_model", epochs=1, pretrained=pretrained_weights(config))

    assert trained["weights"]["layers/dense/vars/0"].tolist() == KERNEL.tolist()
    assert trained["weights"]["layers/dense/vars/1"].tolist() == [7.0]
    nothing = {each: {} for each in ("verdict", "data_verdict", "data", "schema", "signatures")}
    assert collect_provenance(about=about_model(config), **nothing)["pretrained"] == stored


def test_weights_on_gs_with_another_digest_or_name_are_refused(stored, train):
    with pytest.raises(ComponentError, match=f"has the SHA-256 {stored['sha256']}, not 0{{64}}"):
        train(model="begun.build_model", epochs=1, pretrained={**stored, "sha256": "0" * 64})

    gone = {**stored, "path": "gs://bucket/gone.weights.h5"}
    with pytest.raises(
        ComponentError, match=r"train\.pretrained: gs://bucket/gone\.weights\.h5 is not there"
    ):
        train(model="begun.build_model", epochs=1, pretrained=gone)
