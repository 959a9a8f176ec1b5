"""What a cloud run lacks, and where it may be set already."""

import pytest

from slipway.pipeline.cloud.required_settings import RequiredSetting, require
from slipway.pipeline.errors import ConfigError

NEEDED = [
    RequiredSetting("cloud.vertex.project", None, "the id of your project", "PROJECT"),
    RequiredSetting("cloud.vertex.region", None, "where the pipeline runs", "europe-west4"),
]
PLACE = {"cloud": {"vertex": {"project": "mine", "region": "europe-west4"}}}


def _hint(profiles):
    with pytest.raises(ConfigError, match=r"cloud\.vertex\.region is not set") as refused:
        require(NEEDED, who="Vertex AI", profiles=profiles)
    return refused.value.hint


def test_a_profile_that_sets_what_is_missing_is_named():
    assert _hint({"dev": {}, "live": PLACE}).startswith("name --profile live:")


@pytest.mark.parametrize("profiles", [{}, {"dev": {"cloud": {"vertex": {"project": "mine"}}}}])
def test_without_one_the_hint_shows_a_profile_to_write(profiles):
    assert "put below profiles: in the workload file" in _hint(profiles)


def test_nothing_is_said_where_nothing_is_missing():
    require([], who="Vertex AI", profiles={})
