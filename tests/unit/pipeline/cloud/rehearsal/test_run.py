"""What a rehearsal tells its exit handlers."""

import pytest

from slipway.pipeline.cloud.rehearsal.run import final_status
from slipway.pipeline.cloud.rehearsal.services import ServiceName
from slipway.pipeline.runs.record import NodeRecord, RunRecord


@pytest.mark.parametrize("service", [ServiceName.VERTEX, ServiceName.KUBEFLOW_WITHOUT_MLMD])
def test_exit_handler_is_told_of_the_first_failure_or_of_success(service):
    nodes = [NodeRecord(id="Make", type="Make", state="complete")]
    record = RunRecord(run_id="1", workload="taxi", nodes=nodes)
    assert final_status(record, service=service)["state"] == "SUCCEEDED"
    assert "error" not in final_status(record, service=service)
    failed = NodeRecord(id="Use", type="Use", state="failed", error={"message": "broken"})
    record.nodes = [*nodes, failed, NodeRecord(id="Last", type="Last", state="skipped")]
    status = final_status(record, service=service)
    assert (status["state"], status["error"]["message"]) == ("FAILED", "Use: broken")
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2 as types

    assert json_format.ParseDict(status, types.PipelineTaskFinalStatus()).pipeline_task_name == "tfx-dag"


def test_kubeflow_tells_its_own_state_and_no_error():
    record = RunRecord(
        run_id="1", workload="taxi", nodes=[NodeRecord(id="Make", type="Make", state="complete")]
    )
    status = final_status(record, service=ServiceName.KUBEFLOW)
    assert (status["state"], status["error"]) == ("COMPLETE", {})
    record.nodes = [NodeRecord(id="Use", type="Use", state="failed", error={"message": "broken"})]
    status = final_status(record, service=ServiceName.KUBEFLOW)
    assert (status["state"], status["error"]) == ("FAILED", {})
