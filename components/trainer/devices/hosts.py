"""Reads the number of hosts and the index of this one from variables that the platforms set.

GKE, Vertex AI with TPUs    TPU_WORKER_HOSTNAMES (a list), TPU_WORKER_ID
Vertex AI                   CLUSTER_SPEC (JSON: cluster, task)
TensorFlow's own            TF_CONFIG (JSON: cluster, task)
Keras' own                  KERAS_DISTRIBUTION_{JOB_ADDRESSES, NUM_PROCESSES, PROCESS_ID}
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.components.errors import ComponentError

COORDINATOR_PORT = 8476
"""The port on which host 0 waits for the others if the platform names none; JAX's own on Cloud TPU."""


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The hosts of one training.

    Attributes:
        index: of this host, 0 <= index < count. Host 0 writes results.
        count: the number of hosts, >= 1.
        coordinator: "host:port" of host 0; "" if there is only one host.
        source: the variable that names the hosts.
    """

    index: int = 0
    count: int = 1
    coordinator: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise ComponentError(f"{self.source}: this is host {self.index} of {self.count}, counted from 0")


def find_hosts(environment: Mapping[str, str]) -> Hosts:
    """Read the platform's variables; without any there is one host.

    Raises:
        ComponentError: a variable cannot be read, or variables contradict each other.
    """
    if names := _listed(environment.get("KERAS_DISTRIBUTION_JOB_ADDRESSES", "")):
        count = _number(environment, "KERAS_DISTRIBUTION_NUM_PROCESSES", default=len(names))
        index = _number(environment, "KERAS_DISTRIBUTION_PROCESS_ID")
        return _hosts(names[0], index=index, count=count, source="KERAS_DISTRIBUTION_JOB_ADDRESSES")
    for source in ("CLUSTER_SPEC", "TF_CONFIG"):
        # Vertex AI counts a slice of several TPU hosts as one replica.
        if (text := environment.get(source)) and (hosts := _from_cluster(text, source)).count > 1:
            return hosts
    names = _listed(environment.get("TPU_WORKER_HOSTNAMES", ""))
    if len(names) > 1:
        index = _number(environment, "TPU_WORKER_ID")
        return _hosts(names[0], index=index, count=len(names), source="TPU_WORKER_HOSTNAMES")
    return Hosts()


def _from_cluster(text: str, source: str) -> Hosts:
    """Read the hosts from JSON: {"cluster": {job: [addresses]}, "task": {"type": job, "index": number}}."""
    try:
        values: Any = json.loads(text)
        task = values.get("task", {})
        # Evaluators do not train. The first job is workerpool0 on Vertex AI, and the chief in TensorFlow.
        jobs = {job: list(at) for job, at in values.get("cluster", {}).items() if job != "evaluator"}
        order = sorted(jobs, key=lambda job: (job not in ("chief", "master"), job))
        if task.get("type", order[0] if order else "") not in order:
            return Hosts()
        addresses = [address for job in order for address in jobs[job]]
        before = order[: order.index(task.get("type", order[0]))]
        index = sum(len(jobs[job]) for job in before) + int(task.get("index", 0))
    except (ValueError, AttributeError, TypeError) as error:
        raise ComponentError(f"the variable {source} cannot be read: {error}") from error
    if not addresses:
        raise ComponentError(f"the variable {source} names no address of the job {order[0]}")
    return _hosts(addresses[0], index=index, count=len(addresses), source=source)


def _hosts(first: str, *, index: int, count: int, source: str) -> Hosts:
    if count == 1:
        return Hosts()
    coordinator = first if ":" in first else f"{first}:{COORDINATOR_PORT}"
    return Hosts(index=index, count=count, coordinator=coordinator, source=source)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _number(environment: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environment.get(name, "" if default is None else str(default))
    if not text.isdigit():
        raise ComponentError(f"the variable {name} ({text!r}) must be a whole number >= 0")
    return int(text)
