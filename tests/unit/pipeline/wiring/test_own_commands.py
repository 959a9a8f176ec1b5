"""The user's own commands, looked for before they are due."""

import pytest

from slipway.pipeline.errors import ConfigError
from slipway.pipeline.wiring import own_commands
from slipway.pipeline.wiring.own_commands import check_program, check_webhook


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A script of the project; the current folder is another."""
    monkeypatch.setattr(own_commands, "PROJECT_ROOT", tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    file = tmp_path / "tell.sh"
    file.write_text("#!/bin/sh\n", encoding="utf-8")
    file.chmod(0o755)
    return file


def test_programs_on_the_path_scripts_of_the_project_and_no_command_are_right(script):
    for command in (["sh", "-c", "exit"], ["./tell.sh"], [str(script)], []):
        check_program("push.hook", command, none="push.hook=[]")


def test_a_program_that_is_not_there_or_cannot_be_executed_is_refused_by_its_key(script):
    with pytest.raises(ConfigError, match=r"^push\.hook: 'no-such-program' is not a program on the PATH\n"):
        check_program("push.hook", ["no-such-program"], none="push.hook=[]")
    with pytest.raises(
        ConfigError, match=r"^notify\.command: '\./no\.sh' is not a file that can be executed\n"
    ):
        check_program("notify.command", ["./no.sh"], none="notify=null")
    with pytest.raises(ConfigError) as refused:
        check_program("push.hook", ["~/tell.sh"], none="push.hook=[]")
    assert "without '~' or '$VARIABLE', since no shell reads it" in refused.value.hint
    script.chmod(0o644)
    with pytest.raises(ConfigError) as refused:
        check_program("notify.command", ["./tell.sh", "x"], none="notify=null")
    assert refused.value.hint.endswith("(chmod +x); where none is meant: --set 'notify=null'")


def test_a_webhook_needs_a_variable_with_an_address_which_is_not_shown(monkeypatch):
    monkeypatch.setenv("HOOK", "https://example.com/secret")
    check_webhook("HOOK")
    monkeypatch.setenv("HOOK", "example.com/secret")
    with pytest.raises(ConfigError, match=r"^notify\.webhook_env: .* HOOK holds no http\(s\) address\n"):
        check_webhook("HOOK")
    monkeypatch.delenv("HOOK")
    with pytest.raises(ConfigError, match=r"^notify\.webhook_env: .* HOOK is not set\n") as refused:
        check_webhook("HOOK")
    assert "cron" in refused.value.hint
