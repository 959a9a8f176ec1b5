"""The parts of a job have the names that kfp gives them, and what the compiler writes fits."""

import json
from collections import defaultdict
from typing import is_typeddict

import pytest
from kfp.pipeline_spec import pipeline_spec_pb2

from slipway.pipeline.cloud import pipeline_job
from slipway.pipeline.cloud.pipeline_job import PipelineJob
from slipway.pipeline.runs.typed_json import typed

VERTEX = {"serviceAccount", "network", "encryptionSpec", "failurePolicy", "kmsKeyName"}
KUBEFLOW = {"platformSpec"}  # beside `pipelineSpec`, as in the file that its compiler writes
PARTS = [kind for kind in vars(pipeline_job).values() if is_typeddict(kind)]


@pytest.fixture(scope="module")
def keys():
    """The keys of kfp's messages, by the message's name; those of one name together."""
    found = defaultdict(set)
    left = list(pipeline_spec_pb2.DESCRIPTOR.message_types_by_name.values())
    for message in left:
        found[message.name] |= {field.json_name for field in message.fields}
        left += message.nested_types
    return found


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_each_key_is_one_of_kfp_s_vertex_ai_s_or_kubeflow_s(part, keys):
    assert set(part.__annotations__) <= keys[part.__name__] | VERTEX | KUBEFLOW


@pytest.mark.parametrize("workload", ["taxi", "digits"])
def test_a_compiled_job_is_made_of_these_parts(project, workload):
    job = json.loads((project / f"tests/data/cloud/{workload}.json").read_text(encoding="utf-8"))
    assert typed(PipelineJob, job) == job
