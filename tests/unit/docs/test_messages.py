"""Messages that the documentation quotes stand in the code."""

import ast
import re

import pytest

# What stands for a value, in the code's templates and in the documentation's quotes.
HOLE = "\0"


def template(node):
    """A string of the code with its placeholders as holes; None where the node is no string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else HOLE for part in node.values)
    return None


@pytest.fixture(scope="module")
def templates(project):
    files = [path for folder in ("pipeline", "components") for path in (project / folder).rglob("*.py")]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    return sorted({text for node in nodes if (text := template(node))})


def is_told(quote, templates):
    """Whether a string of the code says that, with something else for each `...`."""
    parts = [part.strip() for part in quote.split("...")]
    pattern = re.compile(".*".join(map(re.escape, parts)), re.DOTALL)
    longest = max(parts, key=len)  # to look for it takes a tenth of a pattern's time
    return any(longest in text and pattern.search(text) for text in templates)


def quotes(project, page, pattern):
    return re.findall(pattern, (project / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE)


def test_each_message_of_troubleshooting_is_reported(project, templates):
    found = quotes(project, "troubleshooting.md", r"^### `(.+)`$")
    assert len(found) >= 30
    assert [quote for quote in found if not is_told(quote, templates)] == []


def test_a_message_that_nobody_tells_is_noticed(templates):
    assert not is_told("the loss is ... and nobody tells you", templates)
    assert not is_told("... is held by ... publisher of another kind", templates)


def test_each_message_of_the_components_is_reported(project, templates):
    rows = quotes(project, "components.md", r"^\| stops with \| (.+) \|$")
    # Messages have spaces; keys and commands in backticks, and what a row says of itself, have none.
    found = [quote for row in rows for quote in re.findall(r"`([^`]* [^`]*)`", row)]
    assert len(found) >= 20
    assert [quote for quote in found if not is_told(quote, templates)] == []
