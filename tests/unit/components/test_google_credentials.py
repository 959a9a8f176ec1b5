import pytest

from slipway.components.errors import ComponentError
from slipway.components.google_credentials import find_credentials


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "was not found"),
        ("{", "not a valid json file"),
        ("[]", "AttributeError"),
        ("folder", "Is a directory"),
    ],
)
def test_file_that_the_variable_names_is_named_where_it_gives_none(monkeypatch, tmp_path, content, reason):
    """`gcloud auth` alone would not help: the variable goes first."""
    file = tmp_path / "key.json"
    if content == "folder":
        file.mkdir()
    elif content is not None:
        file.write_text(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    with pytest.raises(
        ComponentError, match=f"GOOGLE_APPLICATION_CREDENTIALS names {file}.*{reason}"
    ) as caught:
        find_credentials("Cloud Storage")
    assert "unset it" in caught.value.hint
