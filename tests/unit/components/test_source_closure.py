"""Which files a dotted path needs: every form of import, and what must and must not count as a change."""

import ast
import hashlib
import os
import sys
from pathlib import Path

import pytest
from counted import lines_run

from slipway.components.errors import ComponentError
from slipway.components.source_closure import closure, source_closure


@pytest.fixture
def repo(tmp_path):
    """Writes files (path -> text) under a root and returns the root."""

    def write(files):
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path

    return write


def files_of(root, *dotted):
    return list(source_closure(dotted or ["app.main"], root=root))


def test_digest_is_the_sha256_of_the_content(repo):
    root = repo({"app.py": "x = 1\n"})
    assert source_closure(["app.f"], root=root) == {
        "app.py": "9e26bf369911c45c243c684147b23fc9e1dcfcf257d299a1c632016a6fcd33f4"
    }


@pytest.mark.parametrize(
    "text",
    [
        "import pkg.lib.deep.part",
        "import pkg.lib.deep.part as p",
        "import os, pkg.lib.deep.part",
        "from pkg.lib.deep import part",
        "from pkg.lib.deep import part as p, other",
        "from pkg.lib.deep.part import name",
        "from pkg.lib.deep.part import *",
        "from ..lib.deep import part",
        "from ..lib.deep.part import name",
        "def f():\n    from pkg.lib.deep import part",
        "class A:\n    def f(self):\n        if self:\n            import pkg.lib.deep.part",
        "async def f():\n    async with x:\n        import pkg.lib.deep.part",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pkg.lib.deep.part",
        "if a:\n    pass\nelif b:\n    import pkg.lib.deep.part",
        "try:\n    import pkg.lib.deep.part\nexcept ImportError:\n    pass",
        "try:\n    pass\nexcept ImportError:\n    import pkg.lib.deep.part",
        "try:\n    pass\nfinally:\n    import pkg.lib.deep.part",
        "try:\n    pass\nexcept* OSError:\n    import pkg.lib.deep.part",
        "for x in y:\n    pass\nelse:\n    import pkg.lib.deep.part",
        "while x:\n    with y:\n        import pkg.lib.deep.part",
        "match x:\n    case 1:\n        import pkg.lib.deep.part",
        "import importlib\nm = importlib.import_module('pkg.lib.deep.part')",
        "from importlib import import_module as load\nload(name='pkg.lib.deep.part')",
        "from importlib import import_module\nimport_module('..lib.deep.part', __package__)",
        "m = __import__('pkg.lib.deep.part', fromlist=['x'])",
        "import importlib\nLAZY = {'f': 'pkg.lib.deep.part'}\nf = lambda n: importlib.import_module(LAZY[n])",
    ],
)
def test_every_form_of_import_is_followed(repo, text):
    root = repo(
        {
            "pkg/app/__init__.py": "",
            "pkg/app/main.py": text,
            "pkg/__init__.py": "",
            "pkg/lib/__init__.py": "",
            "pkg/lib/deep/__init__.py": "",
            "pkg/lib/deep/part.py": "name = 1",
            "pkg/lib/unused.py": "",
        }
    )
    assert files_of(root, "pkg.app.main.f") == [
        "pkg/__init__.py",
        "pkg/app/__init__.py",
        "pkg/app/main.py",
        "pkg/lib/__init__.py",
        "pkg/lib/deep/__init__.py",
        "pkg/lib/deep/part.py",
    ]


def test_relative_import_of_a_sibling_and_of_the_package_itself(repo):
    root = repo(
        {
            "app/__init__.py": "from .base import x",
            "app/base.py": "",
            "app/main.py": "from . import side",
            "app/side.py": "from .. import above\nfrom ... import above",
            "above.py": "Python refuses to import this relatively: `app` is the top of its packages",
        }
    )
    assert files_of(root) == ["app/__init__.py", "app/base.py", "app/main.py", "app/side.py"]


def test_imported_name_may_come_from_the_package_or_be_a_module(repo):
    root = repo({"main.py": "from lib import a, b", "lib/__init__.py": "b = 1", "lib/a.py": ""})
    assert files_of(root, "main") == ["lib/__init__.py", "lib/a.py", "main.py"]


def test_star_import_of_a_package_takes_the_modules_of_its_all(repo):
    root = repo(
        {
            "main.py": "from lib import *",
            "lib/__init__.py": "__all__ = ['a']\n__all__ += ['b']",
            "lib/a.py": "",
            "lib/b.py": "",
            "lib/c.py": "",
        }
    )
    assert files_of(root, "lib", "main") == ["lib/__init__.py", "lib/a.py", "lib/b.py", "main.py"]


def test_all_of_a_package_alone_imports_nothing(repo):
    root = repo({"main.py": "import lib", "lib/__init__.py": "__all__ = ['a']", "lib/a.py": ""})
    assert files_of(root, "main") == ["lib/__init__.py", "main.py"]


def test_strings_count_only_beside_an_import_by_name(repo):
    root = repo({"main.py": "NAME = 'lib'", "lib.py": ""})
    assert files_of(root, "main") == ["main.py"]


@pytest.mark.parametrize(
    "call",
    [
        "import_module(f'kinds.small_{size}')",
        "import_module('kinds.small_' + size)",
        "import_module('kinds.small_%s' % size)",
        "import_module('kinds.small_{}'.format(size))",
        "import_module(f'.small_{size}', 'kinds'), 'lar' + size, f'{size}.py'",
    ],
)
def test_modules_count_whose_names_begin_as_one_that_is_put_together(repo, call):
    root = repo(
        {
            "kinds/__init__.py": f"from importlib import import_module\nload = lambda size: {call}",
            "kinds/small_a.py": "",
            "kinds/small_b/__init__.py": "import other",
            "kinds/large.py": "",
            "other.py": "",
        }
    )
    expected = ["kinds/__init__.py", "kinds/small_a.py", "kinds/small_b/__init__.py", "other.py"]
    assert files_of(root, "kinds.load") == expected


def test_of_slipways_own_modules_those_alone_count_that_are_named_in_full(repo):
    call = "from importlib import import_module\nload = lambda name: import_module(f'slipway.kinds_{name}')"
    root = repo({"slipway/__init__.py": "", "slipway/main.py": call, "slipway/kinds_a.py": ""})
    assert files_of(root, "slipway.main") == ["slipway/__init__.py", "slipway/main.py"]


def test_files_that_code_names_count_beside_it_or_where_imports_start(repo, tmp_path_factory):
    far = tmp_path_factory.mktemp("far") / "words.txt"
    far.touch()
    root = repo(
        {
            "app/__init__.py": f"open('{far}')",
            "app/main.py": "HERE / 'beside.json', open(\"conf/top.yaml\"), 'gone.json', 'app', 'app.'",
            "app/beside.json": "",
            "conf/top.yaml": "",
            "conf/other.yaml": "",
        }
    )
    found = closure(["app.main"], root=root)
    assert found.files == {f"{root}/app/beside.json", f"{root}/conf/top.yaml", str(far)}
    assert list(found.digests) == ["app/__init__.py", "app/main.py"]


def test_folder_without_init_is_a_package_too(repo):
    root = repo({"main.py": "from space.inner import part", "space/inner/part.py": ""})
    assert files_of(root, "main:function") == ["main.py", "space/inner/part.py"]


def test_package_goes_before_a_module_of_the_same_name(repo):
    root = repo({"main.py": "import lib", "lib/__init__.py": "", "lib.py": ""})
    assert files_of(root, "main") == ["lib/__init__.py", "main.py"]


def test_compiled_extension_counts(repo):
    from importlib.machinery import EXTENSION_SUFFIXES

    root = repo({"main.py": "import fast", f"fast{EXTENSION_SUFFIXES[0]}": "\x00binary"})
    assert files_of(root, "main") == [f"fast{EXTENSION_SUFFIXES[0]}", "main.py"]


def test_modules_that_import_each_other_end(repo):
    root = repo({"a.py": "import b", "b.py": "from a import x\nimport b"})
    assert files_of(root, "a.f") == ["a.py", "b.py"]


def test_two_paths_share_one_closure(repo):
    root = repo({"a.py": "import c", "b.py": "import c", "c.py": "", "d.py": ""})
    assert files_of(root, "a.f", "b.g") == ["a.py", "b.py", "c.py"]


@pytest.mark.parametrize("dotted", ["json.dumps", "nowhere.f", "", "a..b", "../a", "a/b.c", "/etc/x"])
def test_path_that_leads_nowhere_under_the_root_adds_nothing(repo, dotted):
    root = repo({"main.py": "", "a/b/c.py": "", "__init__.py": ""})
    assert files_of(root, dotted) == []


@pytest.mark.parametrize(
    "content", [b"import lib\ndef (", b"import lib\0", b"# coding: nonsense\n", b"(" * 5000]
)
def test_file_that_does_not_parse_is_digested_all_the_same(tmp_path, content):
    (tmp_path / "main.py").write_bytes(content)
    (tmp_path / "lib.py").write_text("")
    assert source_closure(["main.f"], root=tmp_path) == {"main.py": hashlib.sha256(content).hexdigest()}


def test_invalid_escape_neither_warns_nor_hides_imports(repo):
    root = repo({"main.py": 'import lib\nx = "\\d"', "lib.py": ""})
    assert files_of(root, "main") == ["lib.py", "main.py"]


def test_encoding_declared_in_the_file_is_honoured(tmp_path):
    (tmp_path / "main.py").write_bytes("# coding: latin-1\nimport lib\nx = 'é'\n".encode("latin-1"))
    (tmp_path / "lib.py").write_text("")
    assert files_of(tmp_path, "main") == ["lib.py", "main.py"]


def test_touching_a_file_is_no_change(repo):
    root = repo({"main.py": "x = 1"})
    before = source_closure(["main"], root=root)
    os.utime(root / "main.py", (1, 1))
    (root / "main.py").chmod(0o600)
    assert source_closure(["main"], root=root) == before


def test_changed_comment_is_a_change_of_that_file_only(repo):
    root = repo({"main.py": "import lib  # one", "lib.py": ""})
    before = source_closure(["main"], root=root)
    repo({"main.py": "import lib  # two"})
    after = source_closure(["main"], root=root)
    assert after["lib.py"] == before["lib.py"]
    assert after["main.py"] != before["main.py"]


def test_edit_that_keeps_size_and_mtime_is_noticed(repo):
    root = repo({"main.py": "x = 1"})
    before, times = source_closure(["main"], root=root), (root / "main.py").stat()
    repo({"main.py": "x = 2"})
    os.utime(root / "main.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert source_closure(["main"], root=root) != before


def test_new_import_brings_its_file_and_a_dropped_one_takes_it_away(repo):
    root = repo({"main.py": "", "lib.py": ""})
    assert files_of(root, "main") == ["main.py"]
    repo({"main.py": "import lib"})
    assert files_of(root, "main") == ["lib.py", "main.py"]
    repo({"main.py": ""})
    assert files_of(root, "main") == ["main.py"]


def test_renamed_module_changes_names(repo):
    root = repo({"main.py": "from lib import old", "lib/old.py": "x = 1"})
    before = source_closure(["main"], root=root)
    (root / "lib/old.py").rename(root / "lib/new.py")
    repo({"main.py": "from lib import new"})
    after = source_closure(["main"], root=root)
    assert list(after) == ["lib/new.py", "main.py"]
    assert after["lib/new.py"] == before["lib/old.py"]


def test_module_that_appears_beside_an_unchanged_import_is_noticed(repo):
    root = repo({"main.py": "try:\n    import extra\nexcept ImportError:\n    extra = None"})
    assert files_of(root, "main") == ["main.py"]
    repo({"extra.py": ""})
    assert files_of(root, "main") == ["extra.py", "main.py"]


def test_link_inside_the_root_counts_under_its_own_name_with_its_target_content(repo):
    root = repo({"main.py": "import alias\nfrom linked import part", "real.py": "x = 1", "lib/part.py": ""})
    (root / "alias.py").symlink_to("real.py")
    (root / "linked").symlink_to("lib")
    before = source_closure(["main"], root=root)
    assert list(before) == ["alias.py", "linked/part.py", "main.py"]
    repo({"real.py": "x = 2"})
    assert source_closure(["main"], root=root)["alias.py"] != before["alias.py"]


def test_root_given_through_a_link_gives_the_same_names(repo, tmp_path_factory):
    root = repo({"main.py": "import lib", "lib.py": ""})
    link = tmp_path_factory.mktemp("links") / "root"
    link.symlink_to(root)
    assert source_closure(["main"], root=link) == source_closure(["main"], root=root)


def test_what_pip_put_into_a_folder_does_not_count_but_what_stands_beside_it_does(repo):
    root = repo(
        {
            "main.py": "import heavy\nimport single\nimport mine",
            "heavy/__init__.py": "",
            "single.py": "",
            "mine.py": "",
            "heavy-1.0.dist-info/RECORD": "heavy/__init__.py,sha256=x,0\nheavy-1.0.dist-info/RECORD,,\n",
            "single-2.dist-info/RECORD": "single.py,sha256=x,0\n",
        }
    )
    assert list(source_closure(["main"], root=root)) == ["main.py", "mine.py"]


def test_installed_packages_do_not_count_even_inside_the_root(repo):
    root = repo(
        {
            "main.py": "import env.tool\nimport vendored\nfrom linked import thing\nimport mine",
            "env/pyvenv.cfg": "",
            "env/tool.py": "",
            ".venv/lib/site-packages/vendored.py": "",
            ".venv/lib/site-packages/linked/thing.py": "",
            "mine.py": "",
        }
    )
    (root / "vendored.py").symlink_to(".venv/lib/site-packages/vendored.py")
    (root / "linked").symlink_to(".venv/lib/site-packages/linked")
    assert files_of(root, "main") == ["main.py", "mine.py"]


def test_root_that_is_itself_an_environment_still_has_its_own_code(repo):
    root = repo({"main.py": "import lib", "lib.py": "", "pyvenv.cfg": ""})
    assert files_of(root, "main") == ["lib.py", "main.py"]


def test_root_inside_site_packages_is_taken_as_given(repo):
    root = repo({"site-packages/main.py": "import lib", "site-packages/lib.py": ""}) / "site-packages"
    assert files_of(root, "main") == ["lib.py", "main.py"]


def test_root_that_is_no_folder_is_refused(tmp_path):
    with pytest.raises(ComponentError, match=r"source root .*missing is not a folder"):
        source_closure(["main"], root=tmp_path / "missing")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_module_is_an_error_that_names_it(repo):
    root = repo({"main.py": ""})
    (root / "main.py").chmod(0)
    with pytest.raises(ComponentError, match=r"main\.py: cannot be read"):
        source_closure(["main"], root=root)


def test_module_that_vanishes_meanwhile_is_an_error_that_names_it(repo, monkeypatch):
    root = repo({"main.py": ""})
    monkeypatch.setattr(os.path, "isfile", lambda path: path.endswith(("main.py", "__init__.py")))
    with pytest.raises(ComponentError, match=r"main/__init__\.py: cannot be read \(No such file"):
        source_closure(["main"], root=root)


def test_modules_are_parsed_once_and_then_known_by_their_content(repo, monkeypatch):
    body = "\n".join(f"def f{i}(x):\n    return x + {i}" for i in range(100))
    root = repo({f"m{i}.py": f"import m{i + 1}, os, json\n{body}\n" for i in range(50)})
    assert len(files_of(root, "m0")) == 50
    parsed = []
    with monkeypatch.context() as patch:
        patch.setattr(ast, "parse", lambda *given, **named: parsed.append(given))
        lines = lines_run(lambda: source_closure(["m0"], root=root))
    assert parsed == []
    assert lines < 50 * 700  # 555 a module measured, 0.1 ms


def test_this_repository_finds_the_modules_that_python_loads():
    import slipway.pipeline.fingerprint.fingerprint  # noqa: F401

    root = Path(__file__).parents[3]
    ours = (
        "slipway.pipeline.fingerprint.fingerprint",
        "slipway.pipeline.fingerprint.rerun_reasons",
        "slipway.components.errors",
    )
    loaded = {Path(sys.modules[name].__file__).relative_to(root).as_posix() for name in ours}
    assert loaded <= set(source_closure(["slipway.pipeline.fingerprint.fingerprint.explain"], root=root))


@pytest.mark.parametrize(
    "part",
    [
        "ingest.executor",
        "statistics_gen.executor",
        "transform.executor",
        "trainer.run_fn",
        "pusher.component",
    ],
)
def test_node_depends_on_no_module_that_only_plans_runs_or_reports(part, project):
    found = source_closure([f"slipway.components.{part}"], root=project)
    assert "slipway/__init__.py" in found
    assert [file for file in found if file.startswith("slipway/pipeline/") or "/" not in file] == []


def test_import_leads_from_one_folder_to_another(tmp_path):
    for name, text in {
        "project/main.py": "import helpers.deep\n",
        "project/src/helpers/__init__.py": "",
        "project/src/helpers/deep.py": "import shared\n",
        "elsewhere/shared.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    further = [tmp_path / "project/src", tmp_path / "elsewhere"]
    assert list(source_closure(["main"], root=tmp_path / "project", further=further)) == [
        f"{tmp_path}/elsewhere/shared.py",
        "main.py",
        "src/helpers/__init__.py",
        "src/helpers/deep.py",
    ]
