"""What a resolver's filter lets through."""

import pytest

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.artifact_query import ArtifactQuery

METADATA = {"n": 3.0, "say": "a AND b"}
MODEL = {"name": "gs://b/m", "uri": "gs://b/m", "type": {"schemaTitle": "tfx.Model"}, "metadata": METADATA}


@pytest.mark.parametrize(
    ("clause", "fits"),
    [
        ('schema_title="tfx.Model"', True),
        ('schema_title="tfx.Examples"', False),
        ('name="gs://b/m"', True),
        ('name="gs://b/other"', False),
        ("metadata.n.number_value=3", True),
        ("metadata.n.number_value=4", False),
        ('metadata.n.string_value="abc"', False),
        ('metadata.say.string_value="a AND b"', True),
        ('metadata.say.string_value="a" AND metadata.n.number_value=3', False),
        ('metadata.missing.string_value="x"', False),
    ],
)
def test_every_clause_counts(clause, fits):
    assert ArtifactQuery(f"state=LIVE AND {clause}").fits(MODEL) is fits


def test_title_is_the_type_that_is_looked_for():
    assert ArtifactQuery('schema_title="tfx.Model" AND state=LIVE').title == "tfx.Model"
    assert ArtifactQuery("state=LIVE").title == ""


def test_clause_of_another_form_is_refused():
    with pytest.raises(ComponentError, match="the resolver's filter create_time>1 cannot be evaluated"):
        ArtifactQuery("state=LIVE AND create_time>1")


def test_a_number_that_is_none_is_refused():
    with pytest.raises(ComponentError, match="number_value=abc cannot be evaluated"):
        ArtifactQuery("state=LIVE AND metadata.n.number_value=abc")
