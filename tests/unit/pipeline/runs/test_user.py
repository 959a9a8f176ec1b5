import os

import pytest

from slipway.pipeline.runs.user import user_name


def test_name_is_the_users(monkeypatch):
    monkeypatch.setenv("LOGNAME", "ada")
    assert user_name() == "ada"


@pytest.mark.parametrize("error", [KeyError, OSError])
def test_user_without_a_name_has_a_number(monkeypatch, error):
    def nameless():
        raise error("uid not found")

    monkeypatch.setattr("getpass.getuser", nameless)
    assert user_name() == f"user {os.getuid()}"
