"""Taking over what a data gate proposed: shown first, written whole, and only what was meant."""

import json

import pytest

from slipway.components.data_gate.finding import Edit, Finding
from slipway.pipeline.commands.accept_schema import accept, propose
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.runs.record import NodeRecord, RunRecord, verdict_path
from slipway.pipeline.runs.run_target import RecordedRequest, WorkloadRun

SCHEMA = """# by hand
feature {
  name: "pay"
  type: BYTES
  domain: "pay"
}
string_domain {
  name: "pay"
  value: "Cash"  # coins
}
"""
PCARD = Edit("add_values", "pay", values=("Pcard",))


@pytest.fixture
def stopped(tmp_path):
    """A run that was stopped with these edits proposed, and its schema file."""

    def call(*edits, schema=SCHEMA):
        path = tmp_path / "taxi.pbtxt"
        path.write_text(schema, encoding="utf-8")
        target = RecordedRequest(target=WorkloadRun(config=json.dumps({"schema": str(path)})))
        node = NodeRecord("DataGate", state="failed", is_stop=True)
        record = RunRecord("run-1", "taxi", nodes=[node], target=target, output=tmp_path)
        kept = verdict_path(tmp_path / "runs" / "run-1", "DataGate")
        kept.parent.mkdir(parents=True, exist_ok=True)
        finding = Finding("domain", "pay", (), "", edits=edits).to_json()
        kept.write_text(json.dumps({"findings": [finding]}), encoding="utf-8")
        return record, path

    return call


def yes(change):
    return True


def test_change_is_shown_and_written_when_agreed(stopped):
    record, path = stopped(PCARD)
    shown = []
    assert accept(propose(record), agrees=lambda change: not shown.append(change))
    assert '+  value: "Pcard"' in shown[0].splitlines()
    assert path.read_text() == SCHEMA.replace("# coins\n", '# coins\n  value: "Pcard"\n')


def test_nothing_is_written_without_agreement(stopped):
    record, path = stopped(PCARD)
    assert not accept(propose(record), agrees=lambda change: False)
    assert path.read_text() == SCHEMA


def test_second_time_there_is_nothing_to_write(stopped):
    record, _ = stopped(PCARD)
    accept(propose(record), agrees=yes)
    proposal = propose(record)
    assert proposal.before == proposal.after


def test_run_that_proposed_nothing_is_reported(stopped):
    record, _ = stopped()
    with pytest.raises(UsageError, match="proposed no edit"):
        propose(record)


def test_schema_that_no_longer_has_the_feature_is_refused_and_stays(stopped):
    record, path = stopped(PCARD, schema='feature { name: "other" type: INT }\n')
    with pytest.raises(UsageError, match="has no feature 'pay'"):
        propose(record)
    assert path.read_text() == 'feature { name: "other" type: INT }\n'


def test_schema_changed_while_the_user_was_asked_is_not_overwritten(stopped):
    record, path = stopped(PCARD)

    def edit_meanwhile(change):
        path.write_text("# mine\n")
        return True

    with pytest.raises(PipelineError, match="changed meanwhile"):
        accept(propose(record), agrees=edit_meanwhile)
    assert path.read_text() == "# mine\n"


def test_link_stays_a_link_and_modes_stay(stopped, tmp_path):
    record, path = stopped(PCARD)
    real = tmp_path / "real.pbtxt"
    path.rename(real)
    real.chmod(0o640)
    path.symlink_to(real)
    accept(propose(record), agrees=yes)
    assert path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "Pcard" in real.read_text()
    assert [file.name for file in tmp_path.glob(".*")] == []


def test_windows_line_ends_and_foreign_letters_stay(stopped):
    record, path = stopped(PCARD)
    path.write_bytes(SCHEMA.replace("by hand", "von Hand, Größe").replace("\n", "\r\n").encode())
    accept(propose(record), agrees=yes)
    text = path.read_bytes().decode()
    assert "Größe\r\n" in text
    assert 'value: "Cash"  # coins\r\n' in text


def test_workload_with_an_inferred_schema_has_no_file(stopped):
    record, _ = stopped(PCARD)
    record.target = RecordedRequest(target=WorkloadRun(config=json.dumps({"schema": None})))
    with pytest.raises(UsageError, match="inferred"):
        propose(record)
