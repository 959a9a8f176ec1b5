"""What a container of a rehearsal sees of this machine."""

import sys
from pathlib import Path

from slipway.pipeline.cloud.rehearsal.run import container_environment, final_status
from slipway.pipeline.runs.record import NodeRecord, RunRecord


def test_container_has_the_image_s_variables_and_only_the_way_to_the_world_of_ours(tmp_path):
    here = {
        "MY_SECRET": "x",
        "PYTHONPATH": "/mine",
        "HOME": "/home/me",
        "GOOGLE_APPLICATION_CREDENTIALS": "/key.json",
        "STORAGE_EMULATOR_HOST": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:8",
    }
    found = container_environment(here, staged=tmp_path)
    assert "MY_SECRET" not in found
    assert found["PYTHONPATH"] == str(tmp_path)
    assert found["HOME"] == "/tmp"  # noqa: S108  (the image's)
    assert found["PATH"].startswith(str(Path(sys.executable).parent))
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST", "https_proxy"):
        assert found[name] == here[name]


def test_variables_that_are_the_users_own_count_as_they_are_here_where_they_are_set(tmp_path):
    here, names = {"TF_USE_LEGACY_KERAS": "1"}, ("TF_USE_LEGACY_KERAS", "KERAS_BACKEND")
    found = container_environment(here, staged=tmp_path, own=names)
    assert [found[name] for name in names] == ["1", "tensorflow"], "what is not set is the image's"
    assert container_environment(here, staged=tmp_path)["TF_USE_LEGACY_KERAS"] == "0"


def test_exit_handler_is_told_of_the_first_failure_or_of_success():
    nodes = [NodeRecord(id="Make", type="Make", state="complete")]
    record = RunRecord(run_id="1", workload="taxi", nodes=nodes)
    assert final_status(record)["state"] == "SUCCEEDED"
    assert "error" not in final_status(record)
    failed = NodeRecord(id="Use", type="Use", state="failed", error={"message": "broken"})
    record.nodes = [*nodes, failed, NodeRecord(id="Last", type="Last", state="skipped")]
    status = final_status(record)
    assert (status["state"], status["error"]["message"]) == ("FAILED", "Use: broken")
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2 as types

    assert json_format.ParseDict(status, types.PipelineTaskFinalStatus()).pipeline_task_name == "tfx-dag"
