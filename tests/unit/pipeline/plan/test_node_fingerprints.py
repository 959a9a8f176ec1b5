"""What a node's fingerprint is made of."""

import json
import os
from importlib.metadata import version

import pytest
from fingerprints import fingerprints

from slipway.components.ingest import storage
from slipway.components.ingest.blocks import FileError
from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.fingerprint.fingerprint import Fingerprint, explain
from slipway.pipeline.plan import node_fingerprints
from slipway.pipeline.plan.node_fingerprints import (
    fingerprint_nodes,
    found_key,
    own_parts,
    own_parts_in,
    with_found,
)
from slipway.pipeline.runs.graph import Graph, Node


@pytest.fixture
def project(tmp_path):
    """A project with user code, a schema and data, and one more folder that code is imported from."""
    files = {
        "work/model.py": "from work import layers\n",
        "work/layers.py": "UNITS = 8\n",
        "work/features.py": "SCALE = 2\n",
        "taxi.pbtxt": "feature {}\n",
        "data/trips.csv": "fare\n1\n",
        "elsewhere/mine.py": "import my_helper\n",
        "elsewhere/my_helper.py": "VALUE = 1\n",
        "elsewhere/alone.py": "import beside\n",
        "elsewhere/beside.py": "VALUE = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def keys(project):
    """The fingerprints' keys, by node id, as things stand."""

    def call(*, baseline="none", batch_size="256"):
        graph = Graph(
            "taxi",
            (
                Node("Ingest", "Ingest", (), data=(f"{project}/data/*.csv",)),
                Node("SchemaGen", "SchemaGen", (), files=(f"{project}/taxi.pbtxt",)),
                Node("Transform", "Transform", ("Ingest", "SchemaGen"), code=("work.features.scale",)),
                Node(
                    "Trainer",
                    "Trainer",
                    ("Transform",),
                    code=("work.model.build",),
                    params={"custom_config.batch_size": batch_size},
                ),
                Node("Baseline", "Resolver", (), is_resolver=True, finds_baseline=True),
                Node("Mine", "Mine", (), code=("mine.component",)),
                Node("ByFile", "ByFile", (), code=(f"{project}/elsewhere/alone.py",)),
            ),
        )
        roots = (project, project / "elsewhere")
        prints = fingerprints(graph, roots=roots, memo=project / "memo.json", baseline=baseline)
        return {node_id: fingerprint.key for node_id, fingerprint in prints.items()}

    return call


def changed(before, after):
    return {node_id for node_id in before if before[node_id] != after[node_id]}


@pytest.mark.parametrize(
    ("file", "nodes"),
    [
        ("work/model.py", {"Trainer"}),
        ("work/layers.py", {"Trainer"}),
        ("work/features.py", {"Transform", "Trainer"}),
        ("taxi.pbtxt", {"SchemaGen", "Transform", "Trainer"}),
        ("data/trips.csv", {"Ingest", "Transform", "Trainer"}),
        ("elsewhere/my_helper.py", {"Mine"}),
        ("elsewhere/beside.py", {"ByFile"}),
    ],
)
def test_edited_file_changes_who_uses_it_and_what_follows(project, keys, file, nodes):
    before = keys()
    with (project / file).open("a", encoding="utf-8") as stream:
        stream.write("# a comment\n")
    assert changed(before, keys()) == nodes


def test_touched_file_changes_nothing(project, keys):
    before = keys()
    for file in ("work/model.py", "data/trips.csv", "taxi.pbtxt"):
        os.utime(project / file, (1, 1))
    assert changed(before, keys()) == set()


def test_added_data_file_counts(project, keys):
    before = keys()
    (project / "data" / "more.csv").write_text("fare\n2\n", encoding="utf-8")
    assert "Ingest" in changed(before, keys())


@pytest.mark.parametrize("pattern", ["days/day-*/*.csv", "days/**/*"])
def test_renamed_folder_of_the_only_data_counts_as_its_name_may_be_a_span_or_a_label(project, pattern):
    node = Node("Ingest", "Ingest", (), data=(f"{project}/{pattern}", f"{project}/none/*.csv"))

    def names():
        parts = own_parts(node, roots=(project,), memo=None)
        return [name for name in parts if name.startswith("data:")]

    (project / "days").mkdir()
    (project / "data").rename(project / "days" / "day-1")
    assert names() == ["data:day-1/trips.csv"]
    (project / "days" / "day-1").rename(project / "days" / "day-2")
    assert names() == ["data:day-2/trips.csv"]


def test_settings_change_their_node_and_the_baseline_its_resolver(keys):
    assert changed(keys(), keys(batch_size="512")) == {"Trainer"}
    assert changed(keys(), keys(baseline="another")) == {"Baseline"}


def test_resolver_of_anything_else_is_never_the_same_twice(project):
    graph = Graph("any", (Node("Find", "Resolver", (), is_resolver=True),))
    first, second = (fingerprints(graph, roots=(project,), memo=None, baseline="")["Find"] for _ in range(2))
    assert first.key != second.key
    assert own_parts_in(first) == own_parts_in(second)


def test_nodes_of_equal_settings_never_share_a_result(project):
    nodes = tuple(Node(node_id, "Draw", (), params={"sides": "6"}) for node_id in ("First", "Second"))

    def keys(pipeline):
        prints = fingerprints(Graph(pipeline, nodes), roots=(project,), memo=None, baseline="none")
        return {fingerprint.key for fingerprint in prints.values()}

    assert len(keys("dice")) == 2
    assert keys("dice") == keys("dice")
    assert not keys("dice") & keys("other")


def test_verdict_of_a_gate_is_no_part_of_what_only_waits_for_it(project):
    def key(limit):
        gate = Node("Gate", "DataGate", (), params={"limits": limit})
        graph = Graph("taxi", (gate, Node("Transform", "Transform", ("Gate",), gates=("Gate",))))
        return fingerprints(graph, roots=(project,), memo=None, baseline="none")

    before, after = key("1"), key("2")
    assert before["Gate"].key != after["Gate"].key
    assert before["Transform"].key == after["Transform"].key


def test_reference_that_was_found_is_part_of_its_resolver(project):
    def key(reference):
        graph = Graph(
            "taxi", (Node("Reference", "Resolver", (), is_resolver=True, finds_reference="passed"),)
        )
        prints = fingerprints(graph, roots=(project,), memo=None, baseline="none", reference=reference)
        return prints["Reference"].key

    assert key("a") == key("a") != key("b")


def test_resolver_that_found_something_else_changes_itself_and_what_follows(project):
    def prints(found):
        graph = Graph(
            "taxi",
            (
                Node("Ingest", "Ingest", ()),
                Node("Latest", "Resolver", ("Ingest",), is_resolver=True, found=found),
                Node("Trainer", "Trainer", ("Latest",)),
                Node("Pusher", "Pusher", ("Trainer",)),
            ),
        )
        return fingerprints(graph, roots=(project,), memo=None, baseline="none")

    one, two = (found_key({"examples": [{"uri": uri, "id": 1}]}) for uri in ("a", "b"))
    assert found_key({"examples": [{"uri": "a", "id": 2}]}) not in (one, two), "made anew at the same place"
    assert with_found(prints(one), "Latest", two) == prints(two)
    assert prints(one)["Ingest"] == prints(two)["Ingest"]
    assert prints(one)["Pusher"] != prints(two)["Pusher"]


def test_file_that_code_reads_counts_where_the_code_names_it_and_the_metadata_store_does_not(project):
    (project / "work" / "features.py").write_text("HERE / 'scale.json', 'store.db'")
    scale, store = project / "work" / "scale.json", project / "store.db"
    node = Node("Transform", "Transform", (), code=("work.features.scale",))

    def parts(text):
        scale.write_text(text)
        store.write_text(text)
        return own_parts(node, roots=[project], memo=None, store=project / "work" / ".." / "store.db")

    one, two = parts("1"), parts("2")
    assert one.items() ^ two.items() == {
        ("code:work/scale.json", parts_["code:work/scale.json"]) for parts_ in (one, two)
    }


def test_installed_slipway_counts_by_what_its_installer_noted(monkeypatch):
    monkeypatch.setattr(node_fingerprints, "installed_version", lambda: {"slipway": "0.1.0 (aa)"})
    assert node_fingerprints.stack_versions.__wrapped__()["slipway"] == "0.1.0 (aa)"


@pytest.mark.parametrize(
    "code",
    [
        "slipway.components.trainer.models.boosted_trees.build_model",
        "slipway.components.reference_models.component.ReferenceModels_Executor",
        "slipway.components.trainer.tuner_fn.tuner_fn",
    ],
)
@pytest.mark.parametrize("is_checkout", [True, False])
def test_version_of_what_fits_our_models_counts(tmp_path, code, is_checkout):
    roots = [PROJECT_ROOT if is_checkout else tmp_path]
    parts = own_parts(Node("Trainer", "Trainer", (), code=(code,)), roots=roots, memo=None)
    package = "keras-tuner" if "tuner" in code else "scikit-learn"
    assert parts[f"stack:{package}"] == version(package)
    other = own_parts(Node("Trainer", "Trainer", (), code=("a.build_model",)), roots=roots, memo=None)
    assert f"stack:{package}" not in other


def test_versions_of_packages_that_user_code_imports_count(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import os, nowhere, helper, google.protobuf\n\ndef f():\n    from sklearn.svm import SVC\n", "utf-8"
    )
    helper = "import pandas as pd\nimport numpy, apache_beam\nimport tensorflow_transform as tft\n"
    (tmp_path / "helper.py").write_text(helper, "utf-8")
    parts = parts_of(Node("Trainer", "Trainer", (), code=("mine.f",)), tmp_path)
    known = node_fingerprints.stack_versions()
    found = {name[6:] for name in parts if name.startswith("stack:")} - known.keys()
    assert found == {"scikit-learn", "pandas"}
    assert parts["stack:pandas"] == version("pandas")


@pytest.mark.parametrize("metadata", [b"Name: odd\nVersion: 1.0\nAuthor: J\xfcrgen\n", None])
def test_package_with_damaged_metadata_hides_no_other(tmp_path, monkeypatch, metadata):
    """Python's own list of packages fails for all of them."""
    (folder := tmp_path / "odd-1.0.dist-info").mkdir()
    (folder / "RECORD").write_text("odd/__init__.py,,\n")
    if metadata:
        (folder / "METADATA").write_bytes(metadata)
    monkeypatch.syspath_prepend(tmp_path)
    assert node_fingerprints._modules.__wrapped__()["sklearn"] == ["scikit-learn"]
    assert node_fingerprints._version.__wrapped__("odd") == ""


@pytest.mark.parametrize("where", [".", "elsewhere"])
def test_python_file_that_a_parameter_names_counts_from_any_folder(tmp_path, monkeypatch, where):
    for name, text in (("tools/grid.py", "from steps import step\n"), ("tools/steps.py", "step = 1\n")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / where).mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path / where)
    parts = parts_of(Node("Trainer", "Trainer", (), code=("tools/grid.py", "x" * 5000 + ".py")), tmp_path)
    assert {name for name in parts if name.startswith("code:")} == {
        "code:tools/grid.py",
        "code:tools/steps.py",
    }


def test_package_that_user_code_imports_counts_in_the_interpreter_that_trains(tmp_path):
    (tmp_path / "mine.py").write_text("import light_boost\n", "utf-8")
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.touch(mode=0o755)
    (tmp_path / "venv/lib/python3.12/site-packages/light_boost-4.1.dist-info").mkdir(parents=True)
    params = {"custom_config.interpreter": json.dumps(str(python))}
    parts = parts_of(Node("Trainer", "Trainer", (), code=("mine.f",), params=params), tmp_path)
    assert parts["stack:the training's light-boost"] == "4.1"


def test_statistics_in_a_store_count_by_their_checksums_and_need_not_be_there(tmp_path, monkeypatch):
    """The gate says what is missing; it names no `data.source`."""
    there = [storage.StoredFile("gs://b/served/Split-train/FeatureStats.pb", 9, checksum="c1")]
    monkeypatch.setattr(storage, "find_files", lambda pattern: there if "Split-*" in pattern else [])
    gate = Node("DataGate", "DataGate", (), data=("gs://b/served/*", "gs://b/served/Split-*/*"))
    data = {name: part for name, part in parts_of(gate, tmp_path).items() if name.startswith("data:")}
    assert data == {f"data:{there[0].name}": "c1 9"}
    ingest = Node("Ingest", "Ingest", (), data=gate.data, params={"input_base": '"gs://b/served"'})
    with pytest.raises(FileError, match="matches no file"):
        parts_of(ingest, tmp_path)


def test_package_there_that_is_named_otherwise_than_its_module_counts(tmp_path):
    """Two packages with parts of one module do not: nothing tells which of them is meant."""
    (tmp_path / "mine.py").write_text("import haiku_like\nimport orb.checkpoint\n", "utf-8")
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.touch(mode=0o755)
    site = tmp_path / "venv/lib/python3.12/site-packages"
    for package, module in (
        ("dm_haiku_like", "haiku_like"),
        ("orb_checkpoint", "orb"),
        ("orb_export", "orb"),
    ):
        (folder := site / f"{package}-1.2.dist-info").mkdir(parents=True)
        (folder / "METADATA").write_text(f"Name: {package.replace('_', '-')}\nVersion: 1.2\n")
        (folder / "RECORD").write_text(f"{module}/{package}.py,,\n")
    params = {"custom_config.interpreter": json.dumps(str(python))}
    parts = parts_of(Node("Trainer", "Trainer", (), code=("mine.f",), params=params), tmp_path)
    theirs = {name: each for name, each in parts.items() if name.startswith("stack:the training's")}
    assert theirs == {"stack:the training's dm-haiku-like": "1.2"}


def test_packages_of_another_interpreter_that_trains_count(tmp_path):
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.touch(mode=0o755)
    installed = tmp_path / "venv/lib/python3.12/site-packages"
    for name in ("jax-0.7.0", "tensorflow_cpu-2.21.0", "rich-1.0"):
        (installed / f"{name}.dist-info").mkdir(parents=True)
    node = Node("Trainer", "Trainer", (), params={"custom_config.interpreter": json.dumps(str(python))})

    was = Fingerprint(parts_of(node, tmp_path))
    (installed / "rich-1.0.dist-info").rename(installed / "rich-2.0.dist-info")
    same = Fingerprint(parts_of(node, tmp_path))
    (installed / "jax-0.7.0.dist-info").rename(installed / "jax-0.8.0.dist-info")
    now = Fingerprint(parts_of(node, tmp_path))

    assert same == was
    assert explain(now, was) == ["the training's jax 0.7.0 -> 0.8.0"]
    assert was.parts["stack:the training's tensorflow-cpu"] == "2.21.0"


def test_packages_of_another_backend_count_in_the_pipeline_s_own_interpreter(tmp_path):
    params = {"custom_config.interpreter": "null", "custom_config.backend": '"torch"'}
    parts = parts_of(Node("Trainer", "Trainer", (), params=params), tmp_path)
    assert parts["stack:the training's keras"] == parts["stack:keras"]


@pytest.mark.parametrize("name", [None, "/nowhere/python", "~nobody-here/bin/python"])
def test_interpreter_that_is_none_or_not_there_has_no_packages(tmp_path, name):
    node = Node("Trainer", "Trainer", (), params={"custom_config.interpreter": json.dumps(name)})
    assert not [part for part in parts_of(node, tmp_path) if "the training's" in part]


def ingest_of(address, pattern="*.csv"):
    params = {"input_base": json.dumps(address), "ingest.format": '"csv"'}
    return Node("Ingest", "Ingest", (), params=params, data=(f"{address}/{pattern}",))


def parts_of(node, tmp_path):
    return own_parts(node, roots=[tmp_path], memo=None)


def test_moved_branch_of_the_hub_is_told_by_its_commits_and_its_changed_files(hub, tmp_path):
    files = {"d/1.csv": b"a\n1\n", "d/2.csv": b"a\n2\n"}
    first = hub.commit("o/n", files)
    second = hub.commit("o/n", {**files, "d/2.csv": b"a\n3\n"})
    third = hub.commit("o/n", {**hub.data_sets["o/n"].commits[second], "README.md": b"words"})
    was, now, then = (
        Fingerprint(parts_of(ingest_of(f"hf://datasets/o/n@{each}/d"), tmp_path))
        for each in (first, second, third)
    )
    moved, changed = explain(now, was)
    assert moved.startswith(f'the commit of hf://datasets/o/n "{first[:12]}')
    assert f'-> "{second[:12]}' in moved
    assert changed == "data changed: 1 of 2 files (hf://datasets/o/n/d/2.csv)"
    # The commit counts also where no file that is read has changed.
    [moved] = explain(then, now)
    assert moved.startswith("the commit of hf://datasets/o/n ")


def test_same_commit_of_the_hub_is_the_same_under_any_name_of_it(hub, tmp_path):
    commit = hub.commit("o/n", {"ü/1.csv": b"a\n1\n"})
    parts = parts_of(ingest_of(f"hf://datasets/o/n@{commit}/ü"), tmp_path)
    assert parts["param:the commit of hf://datasets/o/n"] == f'"{commit}"'
    assert json.loads(parts["param:input_base"]) == "hf://datasets/o/n/ü"
    assert [name for name in parts if name.startswith("data:")] == ["data:hf://datasets/o/n/ü/1.csv"]


def test_branch_in_a_pipeline_of_ones_own_counts_by_its_files(hub, tmp_path):
    hub.commit("o/n", {"1.csv": b"a\n1\n"})
    before = parts_of(ingest_of("hf://datasets/o/n@main"), tmp_path)
    hub.commit("o/n", {"1.csv": b"a\n1\n", "README.md": b"words"})
    assert parts_of(ingest_of("hf://datasets/o/n@main"), tmp_path) == before
    hub.commit("o/n", {"1.csv": b"a\n2\n"})
    assert parts_of(ingest_of("hf://datasets/o/n@main"), tmp_path) != before


def test_another_output_of_the_same_node_is_another_input():
    def print_of(output):
        nodes = (Node("Gen", "Gen", ()), Node("Use", "Use", ("Gen",), inputs={"x": f"Gen.{output}"}))
        return fingerprint_nodes(Graph("p", nodes), {"Gen": {}, "Use": {}}, baseline="")["Use"]

    assert print_of("a").key == print_of("a").key
    assert explain(print_of("b"), print_of("a")) == ["input x Gen.a -> Gen.b"]
