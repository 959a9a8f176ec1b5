"""Digests of the code that makes a model."""

from slipway.components.code_digests import code_digests


def test_code_digest_changes_with_the_code_and_not_with_the_place(tmp_path, monkeypatch):
    digests = []
    for place, text in (("a", "x = 1"), ("b", "x = 1"), ("c", "x = 2")):
        package = tmp_path / place / f"pushed_{place}"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "model.py").write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path / place)
        digests.append(code_digests([f"pushed_{place}.model.build"])[f"pushed_{place}"])
    assert digests[0] == digests[1] != digests[2]


def test_lock_that_an_editor_leaves_beside_the_code_is_left_out(tmp_path, monkeypatch):
    package = tmp_path / "being_edited"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    before = code_digests(["being_edited.model.build"])
    (package / ".#model.py").symlink_to("me@here.1234:1700000000")
    assert code_digests(["being_edited.model.build"]) == before


def test_code_of_a_module_in_no_package_is_its_file(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    digests = []
    for text in ("x = 1", "x = 2"):
        (tmp_path / "one_module.py").write_text(text, encoding="utf-8")
        digests.append(code_digests(["one_module.build"])["one_module"])
    assert digests[0] != digests[1]


def test_code_that_cannot_be_found_is_left_out():
    assert set(code_digests(["no_such_package.model.build", "", "plain"])) == {"slipway.components"}


def test_error_in_the_package_above_is_left_to_who_imports_it(tmp_path, monkeypatch):
    (tmp_path / "broken_above/below").mkdir(parents=True)
    (tmp_path / "broken_above/__init__.py").write_text("1 / 0", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert set(code_digests(["broken_above.below.model.build"])) == {"slipway.components"}
