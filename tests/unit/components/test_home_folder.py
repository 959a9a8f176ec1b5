import pytest

from slipway.components.home_folder import at_home


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("~", "/home/me"),
        ("~/data/*.csv", "/home/me/data/*.csv"),
        ("~/data/", "/home/me/data/"),
        ("data/~/x", "data/~/x"),
        ("~notes.csv", "~notes.csv"),
        ("", ""),
    ],
)
def test_only_a_leading_tilde_is_the_home_folder(monkeypatch, path, found):
    monkeypatch.setenv("HOME", "/home/me")
    assert at_home(path) == found
