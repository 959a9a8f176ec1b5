"""The name that projects made by `new` and `init` import."""

from slipway.pipeline.root import PROJECT_ROOT


def test_tests_of_workloads_find_their_project(project):
    assert project == PROJECT_ROOT
    templates = project / "pipeline" / "start" / "templates"
    for name in ("test.py.j2", "project/test_workload_files.py.j2"):
        text = (templates / name).read_text(encoding="utf-8")
        assert "from slipway.pipeline.root import PROJECT_ROOT" in text
