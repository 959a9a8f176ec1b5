"""Which host this is, by what each platform sets."""

import json

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.devices.hosts import find_hosts


def test_nothing_set_is_one_host():
    hosts = find_hosts({"TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0"})
    assert (hosts.index, hosts.count, hosts.coordinator) == (0, 1, "")


def cluster(task, **jobs):
    return json.dumps({"cluster": jobs, "task": task})


@pytest.mark.parametrize(
    ("variables", "index", "count", "coordinator"),
    [
        ({"TPU_WORKER_HOSTNAMES": "tpu-0.svc,tpu-1.svc", "TPU_WORKER_ID": "1"}, 1, 2, "tpu-0.svc:8476"),
        (
            {
                "CLUSTER_SPEC": cluster(
                    {"type": "workerpool1", "index": 1}, workerpool0=["a:2222"], workerpool1=["b:1", "c:1"]
                )
            },
            2,
            3,
            "a:2222",
        ),
        ({"TF_CONFIG": cluster({"type": "worker", "index": 0}, worker=["w:1"], chief=["x:1"])}, 1, 2, "x:1"),
        (
            {
                "KERAS_DISTRIBUTION_JOB_ADDRESSES": "10.0.0.1:99,10.0.0.2",
                "KERAS_DISTRIBUTION_NUM_PROCESSES": "2",
                "KERAS_DISTRIBUTION_PROCESS_ID": "1",
            },
            1,
            2,
            "10.0.0.1:99",
        ),
    ],
)
def test_platform_variables_give_the_place(variables, index, count, coordinator):
    hosts = find_hosts(variables)
    assert (hosts.index, hosts.count, hosts.coordinator) == (index, count, coordinator)


def test_one_replica_of_vertex_may_be_a_slice_of_several_hosts():
    replica = cluster({"type": "workerpool0", "index": 0}, workerpool0=["a:2222"])
    slice_of_two = {"TPU_WORKER_HOSTNAMES": "t-0,t-1", "TPU_WORKER_ID": "1"}
    hosts = find_hosts({"CLUSTER_SPEC": replica, **slice_of_two})
    assert (hosts.index, hosts.count, hosts.coordinator) == (1, 2, "t-0:8476")
    assert find_hosts({"CLUSTER_SPEC": replica}).count == 1


def test_evaluator_of_a_cluster_trains_alone():
    text = cluster({"type": "evaluator", "index": 0}, worker=["a:1", "b:1"], evaluator=["c:1"])
    assert find_hosts({"TF_CONFIG": text}).count == 1


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"TPU_WORKER_HOSTNAMES": "a,b"}, r"TPU_WORKER_ID \(''\) must be a whole number"),
        ({"TPU_WORKER_HOSTNAMES": "a,b", "TPU_WORKER_ID": "2"}, "this is host 2 of 2"),
        ({"TF_CONFIG": "{"}, "TF_CONFIG cannot be read"),
        ({"CLUSTER_SPEC": "[]"}, "CLUSTER_SPEC cannot be read"),
        ({"TF_CONFIG": '{"cluster": {"worker": []}}'}, "TF_CONFIG names no address of the job worker"),
    ],
)
def test_variable_that_makes_no_sense_is_named(variables, words):
    with pytest.raises(ComponentError, match=words):
        find_hosts(variables)
