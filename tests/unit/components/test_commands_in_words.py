"""Commands in messages of components fit Airflow, rehearsals and container logs, too."""

import pytest


@pytest.mark.parametrize("package", ["data_gate", "model_gate", "pusher", "serving_check"])
def test_gates_and_pusher_name_no_program_that_only_a_local_run_has(project, package):
    """Whoever runs them tells how the run goes on; see `slipway.pipeline.screen.wording`."""
    sources = (project / "components" / package).rglob("*.py")
    assert [file.name for file in sources if "local_runner.py" in file.read_text(encoding="utf-8")] == []
