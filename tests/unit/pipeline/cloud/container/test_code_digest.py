"""The digest by which an image and a checkout are known to hold the same code."""

import json
import os
import subprocess
import sys

from slipway.pipeline.cloud.container.code_digest import digest_of
from slipway.pipeline.root import PROJECT_ROOT


def test_digest_is_of_names_and_contents_in_any_order_and_not_of_bytecode(tmp_path):
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.py").write_text("2")
    (tmp_path / "link").symlink_to("elsewhere")
    names = ["a.py", "b", "b/c.py", "link"]
    first = digest_of(tmp_path, names)
    assert digest_of(tmp_path, [*reversed(names), "b/__pycache__/c.cpython-311.pyc"]) == first
    (tmp_path / "b" / "c.py").write_text("3")
    changed = digest_of(tmp_path, names)
    assert changed != first
    (tmp_path / "a.py").rename(tmp_path / "d.py")
    assert digest_of(tmp_path, ["d.py", *names[1:]]) not in (first, changed)


def test_a_container_tells_who_runs_there_and_what_its_folder_holds(tmp_path):
    (tmp_path / "a.py").write_text("1")
    told = subprocess.run(
        [sys.executable, str(PROJECT_ROOT / "pipeline/cloud/container/code_digest.py")],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert json.loads(told.stdout) == {"user": os.getuid(), "sources": digest_of(tmp_path, ["a.py"])}
