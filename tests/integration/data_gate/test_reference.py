"""What the data is compared with, as folders."""

import json
from dataclasses import asdict

import pytest

from slipway.components.errors import ComponentError

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def test_folder_of_the_user_s_has_to_be_there_and_to_hold_statistics(tmp_path):
    from slipway.components.data_gate.reference import find_reference

    nowhere = str(tmp_path / "nowhere")
    with pytest.raises(ComponentError, match="nowhere does not exist, and data_gate names it as a folder of"):
        find_reference([(nowhere, nowhere)], digest="d")
    with pytest.raises(ComponentError, match="holds no statistics"):
        find_reference([(str(tmp_path), str(tmp_path))], digest="d")


def test_blessing_that_kept_nothing_is_no_reference(tmp_path):
    from slipway.components.data_gate.reference import find_reference

    assert find_reference([("the last", str(tmp_path / "nowhere")), ("", "")], digest="d").name == ""


@pytest.fixture
def sampled(tmp_path):
    """Statistics of a tenth of the rows, beside those of a slice that TFX's executor wrote first."""
    import tfx.components  # noqa: F401  (first: it patches what data validation imports)
    from tensorflow_metadata.proto.v0 import statistics_pb2
    from tfx.types import standard_artifacts

    for split, rows in {"train": 70, "eval": 30}.items():
        found = statistics_pb2.DatasetFeatureStatisticsList()
        for name, count in (("sex_f", 5), ("All Examples", rows)):
            found.datasets.add(name=name, num_examples=count)
        path = tmp_path / f"statistics/Split-{split}/FeatureStats.pb"
        path.parent.mkdir(parents=True)
        path.write_bytes(found.SerializeToString())
    statistics = standard_artifacts.ExampleStatistics()
    statistics.uri = str(tmp_path / "statistics")
    statistics.set_json_value_custom_property("sample_rate_by_split", '{"train": 0.1, "eval": 0.1}')
    return statistics


def test_rows_behind_a_sample_are_those_that_ingest_wrote_or_about_as_many(sampled, tmp_path):
    from slipway.components.data_profile.profile import rows_behind, split_rows

    (tmp_path / "summary.json").write_text(json.dumps({"rows_out": {"train": 711, "eval": 294}}))
    assert rows_behind(sampled, str(tmp_path)) == {"train": 711, "eval": 294}
    assert rows_behind(sampled) == {"train": 700, "eval": 300}
    assert split_rows(sampled, "eval") == 300
    sampled.set_json_value_custom_property("sample_rate_by_split", '{"train": 1.0, "eval": 1.0}')
    assert rows_behind(sampled, str(tmp_path)) == {}
    assert split_rows(sampled, "eval") == 30
    sampled.set_json_value_custom_property("sample_rate_by_split", '{"train": 1.0, "eval": 0.0}')
    assert rows_behind(sampled) == {"train": 70, "eval": 0}, "of a rate of 0 nothing can be told"


def test_sample_is_judged_and_compared_by_the_rows_behind_it(sampled, tmp_path):
    from slipway.components.data_gate.reference import find_reference, read_statistics
    from slipway.components.data_gate.rule_limits import Limits
    from slipway.components.data_gate.rules.rows import find_row_counts
    from slipway.components.data_profile.profile import Profile, keep_profile

    rows = {"train": 700, "eval": 300}
    now = read_statistics(sampled.uri, rows)
    assert list(find_row_counts(now, {}, Limits(min_rows=1000))) == []
    # The same data again, of which all rows were looked at then.
    kept = str(tmp_path / "kept")
    keep_profile(sampled.uri, kept, Profile("then", 1.0, None, {"train": 70, "eval": 30}))
    reference = find_reference([("the last", kept)], digest="now")
    [finding] = find_row_counts(now, reference.statistics, Limits())
    assert "1,000 rows, 900% more than the 100 of the reference" in finding.what
    keep_profile(sampled.uri, kept, Profile("then", 1.0, None, rows))
    same = find_reference([("the last", kept)], digest="now").statistics
    assert list(find_row_counts(now, same, Limits())) == []


def test_label_score_of_rows_that_were_drawn_in_another_way_is_not_compared(tmp_path):
    """By an earlier version, which took the first rows of each file: the same if it took all."""
    from slipway.components.data_profile.label_score import LabelScore
    from slipway.components.data_profile.profile import Profile, read_profile

    score = LabelScore(0.5, 0.1)

    def read_back(profile):
        (tmp_path / "profile.json").write_text(json.dumps(profile), encoding="utf-8")
        return read_profile(str(tmp_path))

    earlier = read_back({"digest": "d", "at_s": 1.0, "label_score": asdict(score)})
    assert earlier.label_score_of(25_000, sample_rows=50_000) == score
    assert earlier.label_score_of(25_001, sample_rows=50_000) is None
    again = read_back(asdict(Profile("d", 1.0, score)))
    assert again.label_score_of(10**6, sample_rows=50_000) == score


@pytest.mark.parametrize("text", ["[]", '{"digest": "d', '{"at_s": "noon"}'])
def test_damaged_profile_is_named(tmp_path, text):
    from slipway.components.data_profile.profile import read_profile

    (tmp_path / "profile.json").write_text(text, encoding="utf-8")
    with pytest.raises(ComponentError, match=r"profile\.json cannot be read: "):
        read_profile(str(tmp_path))
