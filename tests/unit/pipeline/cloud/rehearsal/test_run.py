"""What a rehearsal tells its exit handlers."""

from slipway.pipeline.cloud.rehearsal.run import final_status
from slipway.pipeline.runs.record import NodeRecord, RunRecord


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
