"""What is told before a run is sent to a service."""

from types import SimpleNamespace

import pytest
from small_workload import small_workload

from slipway.pipeline.cloud.submit import check


@pytest.mark.parametrize(
    ("sections", "is_told"),
    [
        ({}, False),
        ({"notify": {"command": ["./tell.sh"]}}, True),
        ({"notify": {"command": ["./tell.sh"]}, "cloud": {"exit_handler": "workloads.toy.tell.tell"}}, False),
    ],
)
def test_notifications_that_no_cloud_run_sends_are_noted(sections, is_told, capsys):
    target = SimpleNamespace(config=small_workload(**sections), places={}, images={})
    service = SimpleNamespace(check=lambda **_: iter(()))
    check(service, target)
    assert ("note: notify: a cloud run sends no notification" in "".join(capsys.readouterr())) is is_told
