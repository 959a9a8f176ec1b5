"""The preflight of a workload that has run."""

import json

import pytest


@pytest.fixture(scope="session")
def preflight(local_runner):
    """The preflight of a workload that has run, for one slice: with libtpu where it is, else for a CPU."""

    def call(workload, output):
        finished = local_runner(
            "preflight", workload, "--tpu", "v5e-8", "--search", "0", "--json", "--output", str(output)
        )
        assert finished.returncode == 0, finished.stderr
        document = json.loads(finished.stdout)
        kept = (output / "preflight" / f"{workload}.json").read_text(encoding="utf-8")
        assert json.loads(kept) == document
        return document["slices"][0]

    return call
