"""Which column a slice is by; what models answer is compared with TFX's Evaluator in tests/integration/."""

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.slow  # imports TFX

FEATURE = 'feature { name: "kind" type: BYTES }'


@pytest.fixture
def loaded(monkeypatch):
    """The models of a request for slices by `kind`, which the model's own graph returns, too."""
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    from slipway.components.evaluator import reading
    from slipway.components.evaluator.request import ModelRequest, Request

    def model(heads, path, columns):
        return SimpleNamespace(columns=columns)

    def load(schema):
        monkeypatch.setattr(reading, "_Model", model)
        request = Request(
            models=(ModelRequest(name="", label="label", is_baseline=False),),
            slices=((), ("kind",)),
            metrics={},
        )
        if schema is not None:
            schema = text_format.Parse(schema, schema_pb2.Schema()).SerializeToString()
        return reading.LoadedModels(request, {"": "model"}, schema)

    return load


def test_raw_column_comes_before_a_transformed_one_of_its_name(loaded):
    found = loaded(FEATURE)
    assert (found._raw, found._transformed) == (["kind"], [])


def test_transformed_column_is_taken_where_no_raw_one_has_its_name(loaded):
    found = loaded(FEATURE.replace("kind", "other"))
    assert (found._raw, found._transformed) == ([], ["kind"])


def test_without_a_schema_nobody_knows_and_tfx_decides(loaded):
    from slipway.components.evaluator.request import NotOursError

    with pytest.raises(NotOursError, match="without a schema, kind may be"):
        loaded(None)
