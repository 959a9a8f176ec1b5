"""The command, with the compiling process, which is another interpreter's, replaced."""

import hashlib
import json
import shutil
import threading
import time
from dataclasses import replace

import pytest

from slipway.components.errors import ComponentError
from slipway.components.preflight.compiler import Unanswered
from slipway.components.preflight.question_and_answer import Answer, Compiled, Question
from slipway.pipeline.commands import preflight as command
from slipway.pipeline.commands.preflight import COMPILE_BYTES, ONE_HOST, Wanted
from slipway.pipeline.config import WorkloadChoice, read_assignments
from slipway.pipeline.engine.processes import default_jobs as processes
from slipway.pipeline.errors import UsageError
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord
from slipway.pipeline.runs.run_target import NOTHING, WorkloadRun
from slipway.pipeline.wiring.preflight_question import named_slices

SCHEMA = """
feature { name: "x" type: FLOAT presence { min_fraction: 1 } shape { dim { size: 4 } } }
feature { name: "tips" type: FLOAT presence { min_fraction: 1 } shape { dim { size: 1 } } }
"""


@pytest.fixture
def asked(monkeypatch):
    """Stands for the compiling process; keeps each question's slice and limit, and how many were at once."""

    class Asked:
        questions: list
        at_once, most_at_once, lasts_s = 0, 0, 0.0
        until_at_once = 1  # a compilation ends once so many have gone on side by side
        answer = None

        def __init__(self):
            self.questions, self._lock = [], threading.Lock()
            self._enough = threading.Event()

        def __call__(self, question, compiler, *, import_roots, limit_s):
            with self._lock:
                self.questions.append((question.slice.name, limit_s))
                self.at_once += 1
                self.most_at_once = max(self.most_at_once, self.at_once)
                if self.at_once >= self.until_at_once:
                    self._enough.set()
            self._enough.wait(60)
            time.sleep(self.lasts_s)
            with self._lock:
                self.at_once -= 1
            step = Compiled(batch_size=question.batch_size, peak_bytes=2**20, flops=1e9, moved_bytes=1e9)
            return self.answer or Answer(step=step, target="tpu", is_fast=question.is_fast)

    asked = Asked()
    monkeypatch.setattr(command, "run_compiler", asked)
    monkeypatch.setattr(command, "find_compiler", lambda: ".venv-tpu/bin/python")
    return asked


@pytest.fixture
def preflight(project, tmp_path):
    """Asks about the taxi workload, of which a run has transformed its data."""
    history = History(tmp_path)
    record = history.new_run("taxi")
    for name in ("graph/transformed_metadata", "examples/Split-train"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "graph/transformed_metadata/schema.pbtxt").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "examples/Split-train/part-0").write_bytes(b"rows")
    outputs = {
        key: [{"uri": str(tmp_path / folder), "type": "", "properties": {}}]
        for key, folder in (("transform_graph", "graph"), ("transformed_examples", "examples"))
    }
    record.nodes = [NodeRecord("Transform", state="complete", outputs=outputs)]
    record.state = "complete"
    history.save(record)

    def ask(*slices, sets=(), **wanted):
        chosen = WorkloadChoice(project / "workloads/taxi/workload.yaml", read_assignments(sets))
        found = command.preflight(chosen, tmp_path, Wanted(slices=slices, **wanted))
        kept = json.loads((tmp_path / "preflight/taxi.json").read_text(encoding="utf-8"))
        assert kept == json.loads(json.dumps(found.to_json()))
        return kept

    return ask


def test_own_prices_count_and_those_of_the_command_line_before_those_of_the_workload(preflight, asked):
    own = ["preflight.prices={v5e: 0.5, v6e: 2.0}", "preflight.prices_of=2026-03"]

    found = preflight("v5e-8", "v6e-8", "v3-8", sets=own, prices=("v5e=0.25",))

    v5e, v6e, v3 = (each["estimate"] for each in found["slices"])
    assert (v5e["price_usd"], v6e["price_usd"], v3["price_usd"]) == (2.0, 16.0, 8.0)
    assert v5e["price"] == f"0.25 USD a chip-hour of {found['made_at'][:7]}, yours"
    assert v6e["price"] == "2 USD a chip-hour of 2026-03, yours"
    assert v3["price"] == "2 USD a chip-hour of 2019-06, as Synced quotes it, not checked"
    # One and a half years apart, and all three are named.
    assert found["prices_of"] == f"2019-06, 2026-03, {found['made_at'][:7]}"
    assert found["recommended"] == "v5e-8"


def test_a_loop_of_ones_own_is_neither_judged_nor_refused(preflight, asked, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    text = "def build_model(features, hyperparameters): ...\ndef fit(model, data, context): ...\n"
    (tmp_path / "looping.py").write_text(text)

    (slice_,) = preflight("v5e-4", sets=["train.model=looping.build_model", "train.backend=jax"])["slices"]

    assert asked.questions == []
    [found] = [each for each in slice_["findings"] if each["rule"] == "not_compiled"]
    assert "error" not in {each["severity"] for each in slice_["findings"]}
    assert found["message"] == (
        "v5e-4: looping runs its own steps in fit(model, data, context), and what is compiled here is Keras' "
        "step, so nothing is known about it"
    )


@pytest.mark.parametrize("name", ["no-such-python", "~nobody-here/bin/python"])
def test_an_interpreter_that_is_not_there_has_no_versions(preflight, asked, name):
    found = preflight("v5e-8", sets=[f"train.interpreter={name}"])
    assert found["slices"]


def test_limit_is_that_of_the_command_line_else_of_the_workload(preflight, asked):
    preflight("v5e-1")
    preflight("v5e-4", sets=["preflight.limit_s=1800"])
    preflight("v5e-8", sets=["preflight.limit_s=1800"], limit_s=5.0)

    assert asked.questions == [("v5e-1", 600.0), ("v5e-4", 1800.0), ("v5e-8", 5.0)]


def test_what_was_answered_is_not_asked_again_and_what_was_not_is(preflight, asked):
    preflight("v5e-1")
    preflight("v5e-1")
    assert len(asked.questions) == 1

    asked.answer = Unanswered("it was not compiled within 5 s")
    assert preflight("v5e-4")["slices"][0]["findings"][-1]["rule"] == "not_compiled"
    asked.answer = None
    assert preflight("v5e-4")["slices"][0]["can_train"]


def test_an_answer_is_of_the_files_and_modules_that_the_model_reads(tmp_path, monkeypatch):
    vocabulary, module = tmp_path / "words.txt", tmp_path / "elsewhere/sizes.py"
    module.parent.mkdir()
    (tmp_path / "reading.py").write_text("import sizes\ndef build_model(features, hyperparameters): ...\n")
    monkeypatch.setenv("PYTHONPATH", str(module.parent))
    packages = {"jax": "1"}
    monkeypatch.setattr(command, "all_package_versions", lambda _: packages)
    question = Question(
        slice=named_slices("v5e-1")[0], model="reading.build_model", features=(), label="y", batch_size=8,
        hyperparameters={"vocabulary": str(vocabulary)},
    )  # fmt: skip

    def key():
        return command._keys([question], ".venv-tpu/bin/python", tmp_path, memo=None)[0]

    keys = [key()]
    for change in (
        lambda: vocabulary.write_text("a"),
        lambda: vocabulary.write_text("b"),
        lambda: module.write_text("N = 1"),
        lambda: module.write_text("N = 2"),
        lambda: packages.update({"a-layer-of-mine": "2"}),
    ):
        change()
        keys.append(key())
        assert keys[-1] == key()
    assert len(set(keys)) == len(keys)


def test_an_answer_whose_search_was_ended_is_asked_again(preflight, asked):
    step = Compiled(batch_size=256, peak_bytes=2**20, flops=1e9, moved_bytes=1e9)
    asked.answer = Answer(step=step, target="tpu", is_search_cut=True)

    assert preflight("v5e-1")["slices"][0]["can_train"]
    preflight("v5e-1")

    assert len(asked.questions) == 2


def test_the_inputs_are_those_of_a_run_with_the_same_data_or_it_is_told(preflight, asked, tmp_path, project):
    history = History(tmp_path)
    [first] = history.runs()

    def ran(*sets):
        config = WorkloadChoice(project / "workloads/taxi/workload.yaml", read_assignments(sets)).config()
        target = WorkloadRun(config=config.model_dump_json(by_alias=True), output=tmp_path)
        record = history.new_run("taxi")
        record.target = replace(NOTHING, workload="taxi", target=target)
        record.nodes, record.state = first.nodes, "complete"
        history.save(record)
        return record.run_id

    def told():
        (slice_,) = preflight("v5e-1")["slices"]
        return [each["message"] for each in slice_["findings"] if each["rule"] == "inputs"]

    ran("data.source=elsewhere.csv")
    assert told() == []  # of the run before, of whose settings nothing is known
    shutil.rmtree(first.folder)
    newest = ran("data.source=another.csv", "train.images={picture: [8, 8]}")
    [message] = told()
    assert f"run {newest}, which had other settings (data.source, train.images)" in message
    ran("train.epochs=3")
    assert told() == []


@pytest.mark.parametrize(
    ("key", "value", "told"), [("span", "2027-01-31", []), ("label", "fare", ["data.label"])]
)
def test_inputs_of_another_span_are_those_of_the_same_settings(tmp_path, project, key, value, told):
    """Each run of a schedule names its own, and the command names none."""
    config = WorkloadChoice(project / "workloads/taxi/workload.yaml").config()
    now = json.loads(config.model_dump_json(by_alias=True))
    record = History(tmp_path).new_run("taxi")
    then = {**now, "data": {**now["data"], key: value}}
    record.target = replace(NOTHING, workload="taxi", target=WorkloadRun(config=json.dumps(then)))
    assert command._other_settings(record, now) == told


@pytest.mark.parametrize("part", ["examples/Split-train", "graph/transformed_metadata"])
def test_a_run_of_whose_transformed_data_a_part_is_gone_is_passed_over(preflight, asked, tmp_path, part):
    shutil.rmtree(tmp_path / part)

    with pytest.raises(UsageError, match="has transformed its data yet"):
        preflight("v5e-1")


def test_code_that_changed_since_the_inputs_were_made_is_told(preflight, asked, tmp_path, monkeypatch):
    history = History(tmp_path)
    [run] = history.runs()
    path = "workloads/taxi/preprocessing.py"

    def told(digest):
        history.save_fingerprints(run.run_id, {"Transform": Fingerprint({f"code:{path}": digest})})
        (slice_,) = preflight("v5e-1")["slices"]
        return [each["message"] for each in slice_["findings"] if each["rule"] == "inputs"]

    now = hashlib.sha256((command.PROJECT_ROOT / path).read_bytes()).hexdigest()
    assert told(now) == []
    assert told("0" * 64) == [
        f"what is said here is of the model's inputs in run {run.run_id}, since which {path} changed"
    ]

    def refuse(*_, **__):
        raise ComponentError("the model takes y, which is not a feature", hint="make an Input")

    monkeypatch.setattr(command, "_answers", refuse)
    with pytest.raises(ComponentError, match="not a feature") as refused:
        preflight("v5e-1")
    assert refused.value.hint.startswith("make an Input; or the features are those of run ")


@pytest.mark.parametrize("damaged", ["", '{"step": {', "[]", '{"step": null}', "{}", "\xff"])
def test_a_damaged_answer_is_asked_again_and_replaced(preflight, asked, tmp_path, damaged):
    preflight("v5e-1")
    [kept] = (tmp_path / "cache/preflight").iterdir()
    whole = kept.read_text(encoding="utf-8")
    kept.write_text(damaged, encoding="latin-1")
    assert preflight("v5e-1")["slices"][0]["can_train"]
    assert len(asked.questions) == 2
    assert kept.read_text(encoding="utf-8") == whole


def test_a_fast_answer_and_a_full_one_are_kept_apart(preflight, asked):
    fast = preflight("v5e-1", is_fast=True)["slices"][0]
    full = preflight("v5e-1")["slices"][0]

    assert (fast["is_fast"], full["is_fast"]) == (True, False)
    assert len(asked.questions) == 2
    assert preflight("v5e-1", is_fast=True)["slices"][0]["is_fast"]
    assert len(asked.questions) == 2


@pytest.mark.parametrize(("free_bytes", "at_once"), [(2.5 * COMPILE_BYTES, 2), (COMPILE_BYTES // 2, 1)])
def test_all_slices_are_compiled_side_by_side_as_memory_allows(
    preflight, asked, monkeypatch, free_bytes, at_once
):
    monkeypatch.setattr(processes.os, "sched_getaffinity", lambda pid: set(range(16)))
    monkeypatch.setattr(processes, "available_memory_bytes", lambda: int(free_bytes))
    asked.until_at_once, asked.lasts_s = at_once, 0.05  # in which one too many would be seen

    preflight(*ONE_HOST)

    assert len(asked.questions) == len(ONE_HOST) > 4
    assert asked.most_at_once == at_once
