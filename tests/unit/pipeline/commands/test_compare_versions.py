"""Which workload and versions the words of `compare` name, and which of them can be compared."""

from pathlib import Path

import pytest
from small_workload import small_workload

from slipway.components.pusher.publish_to_folder import publish
from slipway.pipeline.commands.compare_versions import chosen, compare
from slipway.pipeline.errors import UsageError
from slipway.pipeline.terminal.invocation import DEFAULT_WORKLOAD


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((Path("taxi"), 17, 18), (Path("taxi"), 17, 18)),
        ((Path("17"), 18, None), (DEFAULT_WORKLOAD, 17, 18)),
    ],
)
def test_workload_may_be_left_out(words, expected):
    assert chosen(*words) == expected


@pytest.mark.parametrize(
    "words",
    [
        (DEFAULT_WORKLOAD, None, None),
        (Path("17"), None, None),
        (Path("taxi"), None, None),
        (Path("taxi"), 17, None),
        (Path("serving/17"), 18, None),
    ],
)
def test_one_version_alone_is_not_compared(words):
    with pytest.raises(UsageError, match="compare needs two pushed versions") as refused:
        chosen(*words)
    assert "versions" in refused.value.hint


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        (["no", "perhaps", "yes"], "Class 1 of version {0} is yes, and of version {1} perhaps, so"),
        (["no", "yes", "perhaps"], "Class 2 of version {0} is none, and of version {1} perhaps, so"),
        (["yes", "no"], "Class 0 of version {0} is no, and of version {1} yes, so"),
    ],
)
def test_versions_whose_numbers_mean_other_classes_are_not_compared(classes, words, tmp_path):
    versions = []
    for names in (["no", "yes"], classes):
        model = tmp_path / f"model-{len(versions)}"
        model.mkdir()
        (model / "saved_model.pb").write_bytes(b"%d" % len(versions))
        provenance = {"workload": "toy", "classes": names}
        versions.append(publish(model, base=tmp_path / "output/serving/toy", provenance=provenance).version)
    config = small_workload(transform={"classes": classes})
    with pytest.raises(UsageError, match=words.format(*versions)):
        compare(config, tmp_path / "output", champion=versions[0], challenger=versions[1], on=tmp_path)
