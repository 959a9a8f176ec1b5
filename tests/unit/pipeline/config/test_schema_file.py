"""A schema file that cannot be read is refused before anything runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from slipway.pipeline.config import load_workload, read_assignments
from slipway.pipeline.config.schema_file import find_schema_problem
from slipway.pipeline.errors import ConfigError


def test_schema_of_the_taxi_and_an_empty_one_are_right(project, tmp_path):
    (tmp_path / "empty.pbtxt").write_text("")
    assert find_schema_problem("schemas/taxi.pbtxt", root=project) == ""
    assert find_schema_problem("empty.pbtxt", root=tmp_path) == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            b'feature { name: "a" }\n\nblah blah\n',
            'is not a schema: line 3, column 1: .* no field named "blah";',
        ),
        (b'feature { name: "a" type: XYZ }', "line 1, column 27: .* no value named XYZ;"),
        (b'feature {\n  name: "a"\n', "is not a schema: line 2, "),
        (b"\xff\xfe\x00", "is not text"),
    ],
)
def test_broken_schema_is_reported_with_its_line_and_the_remedy(tmp_path, content, words):
    (tmp_path / "wine.pbtxt").write_bytes(content)

    found = find_schema_problem("wine.pbtxt", root=tmp_path)

    assert re.search(words, found)
    assert found.endswith("from the data")


def test_workload_with_a_broken_schema_is_refused_by_key_file_and_line(project, tmp_path):
    (tmp_path / "wine.pbtxt").write_text("garbage here\n")
    broken = tmp_path / "wine.pbtxt"

    with pytest.raises(ConfigError, match=r"^--set schema=.*: is not a schema: line 1, column 1:") as caught:
        load_workload(
            Path("workloads/taxi/workload.yaml"), root=project, sets=read_assignments([f"schema={broken}"])
        )

    assert caught.value.exit_code == 2


def test_reading_a_schema_imports_no_tensorflow(project):
    code = (
        "import sys; from pathlib import Path; "
        "from slipway.pipeline.config.schema_file import find_schema_problem as find; "
        "assert not find('schemas/taxi.pbtxt', root=Path()); "
        "assert not {'tensorflow', 'tfx', 'apache_beam'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=project, check=True)
