"""The commands that the documentation tells to type are there, with the options that it gives them."""

import re

import pytest
import typer
from called import program

# In code and in quotes; an option's value may be a line further down.
COMMAND = re.compile(r"\b(local_runner|cloud_runner)\.py +([^`\n]*)")
# Behind it another program follows, or a remark.
END = re.compile(r"(^| )#|\s[|;>]|&&|\)")
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
OPTION = re.compile(r"(?<!\S)\[?(--[a-z][a-z-]*|-[a-z])\b")


@pytest.fixture(scope="module")
def programs():
    """The commands by their words, each with its options."""
    found = {}

    def add(words, command):
        found[words] = {name for each in command.params for name in each.opts + each.secondary_opts}
        for name, below in getattr(command, "commands", {}).items():
            add((*words, name), below)

    for name in ("local_runner", "cloud_runner"):
        add((name,), typer.main.get_command(program(name).app))
    return found


def told(text):
    """Each command line in a text: the program, and what follows it."""
    for name, rest in COMMAND.findall(text.replace("\\\n", " ")):
        yield name, END.split(QUOTED.sub("TEXT", rest), maxsplit=1)[0]


def wrong(name, rest, programs):
    """What of a command line is not there; words such as create|list stand for several commands."""
    names = [(name,)]
    for word in rest.split():
        longer = [(*words, each) for words in names for each in word.split("|")]
        if not any(words in programs for words in longer):
            break
        names = longer
    if names == [(name,)]:
        # `run` is meant where an option comes first; a command's name is a word.
        return [] if not rest.strip() or not rest[0].isalpha() else [rest.split()[0]]
    asked = [*OPTION.findall(rest), *(" ".join(words) for words in names if words not in programs)]
    return [each for each in asked if not all(each in programs.get(words, ()) for words in names)]


def test_each_command_of_the_pages_is_there_with_its_options(project, programs):
    # That page shows how a command would be added.
    pages = [page for page in (project / "docs").glob("*.md") if page.name != "contributing.md"]
    texts = {page.name: page.read_text(encoding="utf-8") for page in (*pages, project / "README.md")}
    lines = [(page, *line) for page, text in texts.items() for line in told(text)]
    assert len(lines) > 150
    found = [(page, rest, amiss) for page, name, rest in lines if (amiss := wrong(name, rest, programs))]
    assert found == []


@pytest.mark.parametrize(
    ("line", "amiss"),
    [
        ("local_runner.py runs taxi --sinse 2d", ["--sinse"]),
        ("local_runner.py rollbak --to 3", ["rollbak"]),
        ("cloud_runner.py schedule create|lst taxi", ["cloud_runner schedule lst"]),
        ("cloud_runner.py schedule back-fill taxi --from 1 --till 3", ["--till"]),
        ("cloud_runner.py follow RUN [WORKLOAD] [--profil NAME]", ["--profil"]),
        ("local_runner.py gc --dry-run   # --nothing", []),
        ('local_runner.py rollback taxi --to 7 --reason "not --that"', []),
    ],
)
def test_what_is_not_there_is_noticed(programs, line, amiss):
    [(name, rest)] = told(line)
    assert wrong(name, rest, programs) == amiss
