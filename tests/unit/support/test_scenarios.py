"""The whole runs of tests/e2e/ are dear, so each file opens with what no faster test sees."""

import ast


def test_each_file_of_whole_runs_says_what_is_seen_only_there(project):
    files = sorted((project / "tests/e2e").glob("test_*.py"))
    told = {file.name: ast.get_docstring(ast.parse(file.read_bytes())) or "" for file in files}
    assert told
    assert [name for name, words in told.items() if "Seen only here" not in words] == []
