"""The Python that the documentation shows is that of files which tests run."""

import re

import pytest

SHOWN = {
    "testing.md": ["tests/integration/test_own_parts.py"],
    "add-component.md": [
        "tests/integration/test_own_parts.py",
        "tests/data/own_component/rare_classes/rule.py",
        "tests/data/own_component/rare_classes/component.py",
    ],
}


@pytest.mark.parametrize("page", SHOWN)
def test_what_a_page_shows_is_what_is_run(project, page):
    run = [(project / file).read_text(encoding="utf-8") for file in SHOWN[page]]
    blocks = re.findall(
        r"^```python\n(.*?)^```", (project / "docs" / page).read_text(encoding="utf-8"), re.S | re.M
    )
    assert len(blocks) >= 3
    assert [block for block in blocks if not any(block in text for text in run)] == []
