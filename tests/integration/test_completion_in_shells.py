"""Tab in real shells, each set up as `--install-completion` does it; one that is not there is skipped."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

PROMPT = "READY> "
# What is typed, up to Tab, and what stands there afterwards.
ASKED = [
    ("./local_runner.py run di", "digits"),
    ("./local_runner.py run --set train.batch", "train.batch_size="),
    ("./cloud_runner.py rehea", "rehearse"),
]


@pytest.fixture(
    scope="module",
    params=["bash", *(pytest.param(name, marks=pytest.mark.external) for name in ("zsh", "fish"))],
)
def shell(request, project, tmp_path_factory):
    """A shell, and the environment in which both programs have installed their completion for it."""
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param} here")
    home = tmp_path_factory.mktemp("home")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "HOME": str(home), "PATH": path, "TERM": "dumb"}
    for program in ("local_runner.py", "cloud_runner.py"):
        # `true`: a shell becomes its last command, and the program looks who has called it.
        done = subprocess.run(
            [request.param, "-c", f"./{program} --install-completion; true"],
            cwd=project, env=environment, capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        assert f"{request.param} completion installed" in done.stdout
    return request.param, environment


def test_tab_completes_what_is_typed(shell, project):
    name, environment = shell
    for typed, word in ASKED:
        line = f"{typed.rpartition(' ')[0]} {word}"
        if name == "fish":
            completes_in_fish(typed, word, environment, project)
        else:
            completes_on_a_terminal(name, typed, line, environment, project)


def completes_in_fish(typed, word, environment, project):
    told = subprocess.run(
        ["fish", "-c", f"complete -C '{typed}'"],
        cwd=project, env=environment, capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert [line.partition("\t")[0] for line in told.stdout.splitlines()] == [word]


def completes_on_a_terminal(name, typed, line, environment, project):
    terminal = pexpect.spawn(name, ["-i"], cwd=str(project), env=environment, encoding="utf-8", timeout=300)
    try:
        terminal.sendline(f"PS1='{PROMPT}'")
        terminal.expect_exact([f"\n{PROMPT}", f"\r{PROMPT}"])  # not the line that sets it
        terminal.send(f"{typed}\t")
        terminal.expect_exact(line)
        if name == "bash" and line.endswith("="):
            terminal.send("5")  # the value follows without a space
            terminal.expect_exact("5")
            assert terminal.before == ""
    finally:
        terminal.close(force=True)
