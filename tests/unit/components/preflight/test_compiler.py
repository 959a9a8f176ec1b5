import json
from dataclasses import replace
from pathlib import Path

import pytest
from limits_of_commands import limit_counts_from

from slipway.components.preflight import compiler
from slipway.components.preflight.compile_and_measure import missing_module
from slipway.components.preflight.compiler import (
    COMPILERS,
    WITH_LIBTPU,
    Unanswered,
    adapt_to_compiler,
    all_package_versions,
    package_versions,
    run_compiler,
    runtime_versions,
)


def test_without_libtpu_the_question_is_for_a_cpu_whatever_the_slice_is(case):
    asked = adapt_to_compiler(case().question, COMPILERS[1])

    assert (asked.slice.generation, asked.slice.devices, asked.batch_size) == ("", 1, 1024)
    assert asked.slice.name == "a CPU"


def test_only_libtpu_is_asked_for_less_effort(case):
    fast = case(is_fast=True).question

    assert adapt_to_compiler(fast, WITH_LIBTPU).is_fast
    assert not adapt_to_compiler(fast, COMPILERS[1]).is_fast


@pytest.mark.parametrize(("batch_size", "compiled"), [(1024, 1024), (1001, 1008), (3, 8)])
def test_a_batch_that_the_replicas_cannot_share_is_compiled_rounded_up(case, batch_size, compiled):
    assert adapt_to_compiler(case(batch_size=batch_size).question, WITH_LIBTPU).batch_size == compiled


def test_devices_that_cannot_be_divided_are_not_compiled_for(case):
    said = run_compiler(case(model_parallel=3).question, WITH_LIBTPU, import_roots=[], limit_s=60.0)

    assert isinstance(said, Unanswered)


def test_a_compiling_process_that_was_killed_is_reported_as_one(case, tmp_path, monkeypatch):
    (tmp_path / "python").write_text("#!/bin/sh\nkill -9 $$\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(compiler, "PROJECT_ROOT", tmp_path)

    said = run_compiler(case().question, "python", import_roots=[], limit_s=60.0)

    assert isinstance(said, Unanswered)
    assert "this machine's memory is short" in said.reason


@pytest.mark.parametrize(
    "ended",
    [
        "touch told; exec sleep 3600",
        "kill -9 $$",
        "exit 3",
        "printf '{\"step\": {'; kill -9 $$",
        'echo \'{"failed": "x"}\'',
    ],
)
def test_what_was_compiled_before_the_search_was_ended_is_kept(case, tmp_path, monkeypatch, ended):
    known = replace(case().answer, is_search_cut=True)
    (tmp_path / "known.json").write_text(json.dumps(known.to_json()) + "\n", encoding="utf-8")
    script = f"#!/bin/sh\ncd {tmp_path}\ncat known.json\n{ended}\n"
    (tmp_path / "python").write_text(script, encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(compiler, "PROJECT_ROOT", tmp_path)

    limit_s = 60.0
    if "sleep" in ended:
        limit_s = 0.2
        limit_counts_from(tmp_path / "told", monkeypatch)
    assert run_compiler(case().question, "python", import_roots=[], limit_s=limit_s) == known


def test_a_module_that_only_the_compilers_python_lacks_says_nothing_about_the_model(
    case, tmp_path, monkeypatch
):
    (tmp_path / "python").write_text('#!/bin/sh\necho \'{"lacks": "sklearn"}\'\n', encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(compiler, "PROJECT_ROOT", tmp_path)

    said = run_compiler(case().question, "python", import_roots=[], limit_s=60.0)

    assert isinstance(said, Unanswered)
    assert said.reason == "python, which compiles, lacks the module sklearn, which the model imports"


def test_of_a_slice_that_libtpu_does_not_describe_nothing_is_known(case, tmp_path, monkeypatch):
    told = json.dumps({"unanswered": "libtpu does not describe it (no v7)", "hint": "make tpu-compiler"})
    (tmp_path / "python").write_text(f"#!/bin/sh\necho '{told}'\n", encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(compiler, "PROJECT_ROOT", tmp_path)

    said = run_compiler(case().question, "python", import_roots=[], limit_s=60.0)

    assert said == Unanswered("libtpu does not describe it (no v7)", "make tpu-compiler")


@pytest.mark.parametrize(
    ("error", "lacks"),
    [
        (ModuleNotFoundError("No module named 'no_such'", name="no_such.layers"), "no_such"),
        (ModuleNotFoundError("No module named 'json.no'", name="json.no"), ""),
        (ModuleNotFoundError("No module named 'own.part'", name="own.part"), ""),
        (ImportError("cannot import name", name="no_such"), ""),
    ],
)
def test_a_missing_package_is_told_from_a_mistake_in_the_users_imports(error, lacks):
    assert missing_module(error, "own.model.build_model") == lacks


def test_a_compilation_may_have_no_limit(case, tmp_path, monkeypatch):
    (tmp_path / "python").write_text('#!/bin/sh\necho \'{"lacks": "x"}\'\n', encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(compiler, "PROJECT_ROOT", tmp_path)

    said = run_compiler(case().question, "python", import_roots=[], limit_s=float("inf"))

    assert isinstance(said, Unanswered)


def test_a_compiling_process_may_print_what_is_no_text(case, tmp_path, monkeypatch):
    (tmp_path / "python").write_text("#!/bin/sh\nprintf 'no \\377 memory' >&2\nexit 3\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(compiler, "PROJECT_ROOT", tmp_path)

    said = run_compiler(case().question, "python", import_roots=[], limit_s=60.0)

    assert said == Unanswered("the compiling process ended with 3: no \N{REPLACEMENT CHARACTER} memory")


def test_a_compiling_process_finds_an_installed_slipway(case, monkeypatch):
    asked = []
    monkeypatch.setattr(
        compiler, "import_path", lambda *_, is_same_python, **__: asked.append(is_same_python) or ""
    )
    monkeypatch.setattr(compiler, "PROJECT_ROOT", Path("/"))

    run_compiler(case().question, "bin/true", import_roots=[], limit_s=60.0)

    assert asked == [False]


def test_a_compiling_process_imports_from_where_the_training_does(case, tmp_path, monkeypatch):
    (tmp_path / "python").write_text("#!/bin/sh\necho $PYTHONPATH >&2\nexit 3\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(compiler, "PROJECT_ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", "/shared/modules")

    said = run_compiler(case().question, "python", import_roots=[Path("/own")], limit_s=60.0)

    assert said.reason.startswith("the compiling process ended with 3: /own:/shared/modules:")


def test_packages_of_an_environment_are_read_without_starting_it(tmp_path):
    packages = tmp_path / "lib/python3.11/site-packages"
    for name in ("libtpu-0.0.42", "tensorflow_tpu-2.20.0", "numpy-2.4"):
        (packages / f"{name}.dist-info").mkdir(parents=True)

    versions = {"libtpu": "0.0.42", "tensorflow-tpu": "2.20.0"}
    assert package_versions(tmp_path / "bin/python") == versions
    assert all_package_versions(tmp_path / "bin/python") == {**versions, "numpy": "2.4"}
    assert package_versions(tmp_path / "elsewhere/bin/python") == {}


def test_what_a_python_lacks_is_known_only_if_all_its_packages_are_seen(tmp_path):
    python = tmp_path / "bin/python"
    assert runtime_versions(python) is None
    (tmp_path / "lib/python3.11/site-packages/torch-2.9.dist-info").mkdir(parents=True)
    assert runtime_versions(python) == {}
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    assert runtime_versions(python) == {}
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = true\n")
    assert runtime_versions(python) is None
