"""The commands around pushed versions: list, check, go back, thin out."""

import errno
import os
import subprocess
from datetime import UTC, datetime

import pytest
from small_workload import small_workload

from slipway.components.errors import ComponentError
from slipway.components.pusher import publish_to_folder as publishing
from slipway.components.pusher import version_store
from slipway.components.pusher.endpoint import EndpointSettings
from slipway.components.pusher.manifest import Manifest, read_manifest
from slipway.components.pusher.manifest import verify as problem_of
from slipway.components.pusher.retention import thin_out
from slipway.components.pusher.version_store import version_store_at
from slipway.components.pusher.versions import Published
from slipway.pipeline.commands import show
from slipway.pipeline.commands import versions as rolling_back
from slipway.pipeline.commands.gc.kept_runs import kept_runs
from slipway.pipeline.commands.versions import Version, pushed_version, rollback, versions, versions_text
from slipway.pipeline.config.push import SignConfig
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import alone, working
from slipway.pipeline.runs.run_id import parts_of
from slipway.pipeline.runs.run_target import Origin, RecordedRequest
from slipway.pipeline.terminal.invocation import command

NAMES = ("a", "b", "c")


def live_model(base):
    newest = max(base.glob("[0-9]*"), key=lambda path: int(path.name))
    return (newest / "saved_model.pb").read_text(encoding="utf-8")


def test_versions_are_listed_newest_first_with_metrics_and_the_live_one(config, output, pushed):
    first, second = pushed("a", "b")
    found = versions(config, output)
    assert [(v.version, v.live) for v in found] == [(second, True), (first, False)]
    assert found[0].to_json()["metrics"] == {"auc": 0.9}
    lines = versions_text(found, config, output).splitlines()
    assert lines[0].split()[:2] == [str(second), "live"]
    assert "auc 0.9" in lines[0]


def test_missing_versions_are_reported(config, output):
    assert versions_text(versions(config, output), config, output) == (
        f"No version was pushed yet to {output}/serving/toy."
    )
    with pytest.raises(UsageError, match="has no version"):
        rollback(config, output, to=None)


@pytest.mark.parametrize(
    ("origin", "remedy"),
    [
        (Origin("toy.yaml", (), "prod"), "versions toy --profile prod --output"),
        (
            Origin("toy.yaml", ("data.span=17", "push.destination=/srv/toy"), "prod"),
            "versions toy --profile prod --set push.destination=/srv/toy --output",
        ),
    ],
)
def test_versions_that_other_settings_pushed_elsewhere_are_named_where_none_are(
    config, output, origin, remedy
):
    history = History(output)
    record = history.new_run("toy", RecordedRequest(origin=origin))
    record.pushed = {"version": "17", "path": "/srv/toy/17"}
    history.save(record)
    told = f"; run {record.run_id} pushed version 17 to /srv/toy."
    assert told in versions_text([], config, output)
    assert remedy in versions_text([], config, output)
    with pytest.raises(UsageError, match="has no version; run") as refused:
        rollback(config, output, to=None)
    assert remedy in refused.value.hint


def test_versions_that_the_same_words_pushed_elsewhere_are_told_without_those_words(config, output):
    """The file has got another destination, or the output folder was moved: the command has just been run."""
    history = History(output)
    record = history.new_run("toy", RecordedRequest(origin=Origin("toy.yaml")))
    record.pushed = {"version": "17", "path": "/srv/toy/17"}
    history.save(record)
    assert versions_text([], config, output).endswith("pushed version 17 to /srv/toy.")
    with pytest.raises(UsageError, match="has no version; run") as refused:
        rollback(config, output, to=None)
    assert "run toy --output" in refused.value.hint


def test_pushed_version_is_the_newest_or_the_one_that_is_asked_for(base, output, pushed):
    first, second = pushed("a", "b")
    store = version_store_at(str(base))
    assert pushed_version(store, None, small_workload(), output) == second
    assert pushed_version(store, first, small_workload(), output) == first
    with pytest.raises(UsageError, match=r"has no version 3\.") as refused:
        pushed_version(store, 3, small_workload(), output)
    assert "versions toy" in refused.value.hint


def test_version_made_by_hand_is_listed_as_one(config, output, base):
    (base / "7").mkdir(parents=True)
    (base / "7/saved_model.pb").touch()
    assert "no readable manifest" in versions_text(versions(config, output), config, output)


def test_rollback_of_which_a_manifest_tells_little_is_listed():
    told = Version(8, live=True, manifest=Manifest({}, {"republished": {"version": 7, "by": "anna"}}))
    assert told.line().endswith("version 7 again by anna")


def test_rollback_publishes_the_earlier_model_as_the_newest_and_notes_it(config, output, base, pushed):
    first, second = pushed("a", "b")
    done = rollback(config, output, to=None)
    assert done.published.version > second
    assert (done.target, done.instead_of) == (first, second)
    assert live_model(base) == "a"
    assert "still compared with the latest blessed model and its data; `baseline --set RUN`" in done.text()
    newest = versions(config, output)[0]
    assert newest.provenance["republished"]["version"] == first
    assert newest.provenance["pushed_at"] == "at a"
    assert f"version {first} again" in newest.line()
    assert problem_of(done.published.path) == ""
    assert "published again" in (done.published.path / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_rollback_is_on_record_with_who_when_and_why(config, output, base, pushed, monkeypatch):
    monkeypatch.setenv("LOGNAME", "ann")
    first, second = pushed("a", "b")
    begun = datetime.now(UTC).replace(microsecond=0)
    done = rollback(config, output, to=None, reason="wrong fares")
    [record] = show.runs(output)
    assert begun <= parts_of(record.run_id)[0] <= datetime.now(UTC)
    [line] = show.runs_text([record], output).splitlines()
    assert line.startswith(f"{record.run_id} ")
    assert f"rolled back from {second} to {first} by ann: wrong fares" in line
    assert f"pushed {done.published.version}" in line
    assert f"version {first} again by ann, 20" in versions_text(versions(config, output), config, output)
    assert versions_text(versions(config, output), config, output).splitlines()[0].endswith(": wrong fares")
    assert "by ann: wrong fares" in show.show_text(record)
    assert show.show_text(record).endswith(f"\nlive      version {done.published.version}")
    pushed("c")
    newest = versions(config, output)[0].version
    assert newest != done.published.version
    assert show.show_text(record).endswith(f"\nlive      version {newest}")
    card = (done.published.path / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "by ann, reason wrong fares" in card


def test_rollback_that_cannot_be_noted_is_done_all_the_same_and_says_so(output, base, pushed, tmp_path):
    _, bad = pushed("a", "b")
    (output / "runs").write_text("in the way", encoding="utf-8")
    config = small_workload(push={"hook": ["touch", str(tmp_path / "told")]})

    with pytest.raises(PipelineError) as told:
        rollback(config, output, to=None)

    assert live_model(base) == "a"
    assert (tmp_path / "told").exists()
    [live, *_] = versions(config, output)
    assert live.version > bad
    assert told.value.message == (
        f"Version {live.copy_of} is live again as {live.version}, but `runs` will not show it: "
        f"{output} cannot be written: Not a directory."
    )


def test_rollback_that_may_open_no_more_files_for_its_note_is_not_told_to_make_room(
    output, pushed, monkeypatch
):
    def refuse(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    pushed("a", "b")
    monkeypatch.setattr(History, "save", refuse)
    with pytest.raises(PipelineError, match=r"live again .* Too many open files") as told:
        rollback(small_workload(), output, to=None)
    assert told.value.hint.startswith("raise the limit of open files (`ulimit -n`); nothing else")


def test_rollback_whose_hook_fails_goes_no_further_back_when_it_is_repeated(output, base, pushed, tmp_path):
    _, second, third = pushed(*NAMES)
    works = tmp_path / "works"
    config = small_workload(push={"hook": ["ls", str(works)]})

    with pytest.raises(ComponentError, match=r"is pushed, but push.hook 'ls' ended with code 2") as told:
        rollback(config, output, to=None)
    assert live_model(base) == "b"
    assert told.value.hint.startswith("fix it, then ")
    assert f"rollback toy --to {second} --output {output}" in told.value.hint

    works.touch()
    before = versions(config, output)
    done = rollback(config, output, to=second)
    assert versions(config, output) == before
    assert done.published == Published(before[0].version, str(base), was_there=True)
    assert (done.target, done.instead_of) == (second, third)
    assert len(show.runs(output)) == 1, "it is on record once"


def test_rollback_takes_all_requests_from_the_model_that_it_replaces(output, pushed, monkeypatch):
    first, _ = pushed("a", "b")
    endpoint = EndpointSettings("p", "r", "taxi", "image", "m", 1, 1, traffic=20)
    shares = []

    class Deployment:
        def __init__(self, settings):
            self.traffic = settings.traffic

        def deploy(self, published, **_):
            shares.append((published.version, self.traffic))

    monkeypatch.setattr(rolling_back, "endpoint_settings", lambda _: endpoint)
    monkeypatch.setattr(rolling_back, "deployment_at", Deployment)
    done = rollback(small_workload(), output, to=None)
    assert done.target == first
    assert shares == [(done.published.version, 100)]


def test_rollback_that_cannot_be_published_names_itself_as_the_remedy(config, output, base, pushed):
    first, _ = pushed("a", "b")
    (base / ".lock").unlink()
    (base / ".lock").mkdir()
    with pytest.raises(ComponentError, match="cannot be published") as told:
        rollback(config, output, to=None)
    assert f"then {command('rollback', 'toy', '--to', str(first), output=output)}" in told.value.hint


def test_remedies_name_the_workload_as_it_was_named_and_its_profile(config, output, base, pushed):
    """Without the profile, they would look into another destination."""
    named = config.named_by(("mine.yaml", "--profile", "prod"))
    with pytest.raises(UsageError) as told:
        rollback(named, output, to=None)
    assert told.value.hint == command("run", "mine.yaml", "--profile", "prod", output=output)
    first, _ = pushed("a", "b")
    with pytest.raises(UsageError) as told:
        rollback(named, output, to=3)
    assert told.value.hint == command("versions", "mine.yaml", "--profile", "prod", output=output)
    (base / ".lock").unlink()
    (base / ".lock").mkdir()
    with pytest.raises(ComponentError) as told:
        rollback(named, output, to=None)
    assert f"rollback mine.yaml --profile prod --to {first}" in told.value.hint


def test_rollback_is_never_the_latest_run_and_gc_keeps_it(config, output, base, pushed):
    pushed("a", "b")
    rollback(config, output, to=None)
    with pytest.raises(UsageError, match="has no runs yet"):
        show.find(None, output)
    [record] = show.runs(output)
    assert show.find(record.run_id, output) == record
    assert kept_runs([record], keep=0, exists=lambda _: False) == {record.run_id: "a rollback"}


def test_second_rollback_goes_one_further_back_and_a_third_finds_nothing(config, output, base, pushed):
    pushed(*NAMES)
    rollback(config, output, to=None)
    assert live_model(base) == "b"
    rollback(config, output, to=None)
    assert live_model(base) == "a"
    with pytest.raises(UsageError, match="no version before"):
        rollback(config, output, to=None)


def test_rollback_to_a_version_goes_there_also_forwards(config, output, base, pushed):
    _, _, third = pushed(*NAMES)
    rollback(config, output, to=None)
    rollback(config, output, to=third)
    assert live_model(base) == "c"


def test_rollback_to_what_is_live_or_not_there_is_refused(config, output, pushed):
    (only,) = pushed("a")
    with pytest.raises(UsageError, match="which is live, already is that model"):
        rollback(config, output, to=only)
    with pytest.raises(UsageError, match="has no version 12"):
        rollback(config, output, to=12)


def test_rollback_to_a_damaged_version_is_refused(config, output, base, pushed):
    first, _ = pushed("a", "b")
    (base / str(first) / "variables/variables.index").write_text("A" * 9, encoding="utf-8")
    with pytest.raises(ComponentError, match=r"is not used: variables/variables\.index does not match"):
        rollback(config, output, to=None)
    assert live_model(base) == "b"


def test_rollback_waits_for_no_run_but_says_that_one_is_at_work(config, output, pushed, project):
    pushed("a", "b")
    program = (
        "import sys; from pathlib import Path; from slipway.pipeline.runs.lock import working\n"
        "with working(Path(sys.argv[1]), sys.argv[2], run_id='20261122-1'):\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [os.sys.executable, "-c", program, str(output), config.name],
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        told = rf"toy in {output} is in use by process {holder.pid} \(run 20261122-1\)"
        with pytest.raises(UsageError, match=told):
            rollback(config, output, to=None)
        holder.stdin.close()
    with working(output, config.name, run_id="free"):
        pass


def test_run_of_another_workload_keeps_nobody_from_a_rollback_and_gc_does(config, output, pushed):
    first, _ = pushed("a", "b")
    with working(output, "digits", run_id="20261122-1"):
        assert rollback(config, output, to=None).target == first
    with alone(output, run_id="gc"), pytest.raises(UsageError, match=r"in use by process \d+ \(gc\)"):
        rollback(config, output, to=None)


def test_rollback_keeps_as_many_versions_as_the_workload_says(output, base, pushed):
    _, second, third = pushed(*NAMES)
    done = rollback(small_workload(push={"keep": 2}), output, to=second)
    assert version_store_at(str(base)).numbers() == [third, done.published.version]


def test_keep_removes_the_oldest_and_never_the_live_one(base, pushed):
    found = pushed(*NAMES)
    assert thin_out(str(base), keep=2) == found[:1]
    assert thin_out(str(base), keep=1) == found[1:2]
    assert thin_out(str(base), keep=1) == []
    assert version_store_at(str(base)).numbers() == found[2:]
    assert not list(base.glob(".staging-*"))


def test_keep_leaves_what_no_push_made(base, pushed):
    (base / "5").mkdir(parents=True)
    (base / "5/saved_model.pb").touch()
    newest = pushed("a", "b")[-1]
    thin_out(str(base), keep=1)
    assert version_store_at(str(base)).numbers() == [5, newest]


def test_removal_that_is_cut_short_leaves_no_half_version(base, pushed, monkeypatch):
    first, second = pushed("a", "b")

    def killed(path):
        raise OSError(5, "killed here")

    with monkeypatch.context() as dying:
        dying.setattr(publishing.shutil, "rmtree", killed)
        with pytest.raises(ComponentError):
            thin_out(str(base), keep=1)
    assert version_store_at(str(base)).numbers() == [second]
    assert not (base / str(first)).exists()
    pushed("c")
    assert not list(base.glob(".staging-*"))


def test_rollback_repeats_what_was_checked_and_not_what_was_listed(
    config, output, base, pushed, key_files, monkeypatch
):
    private, public = key_files()
    push = {"sign": SignConfig(key=str(private)), "verify_key": None}
    config = config.model_copy(update={"push": config.push.model_copy(update=push)})
    first, _ = pushed("a", "b")
    signed = rollback(config, output, to=first).published
    pushed("c")
    file = signed.path / "manifest.json"
    own, listed = file.read_bytes(), read_manifest(signed.path)
    again = {**listed.provenance["republished"], "version": 7}
    file.write_bytes(Manifest(listed.files, {**listed.provenance, "republished": again}).to_bytes())
    check = version_store._early_problem
    monkeypatch.setattr(
        version_store, "_early_problem", lambda there, trust: file.write_bytes(own) and check(there, trust)
    )
    push["verify_key"] = str(public)
    config = config.model_copy(update={"push": config.push.model_copy(update=push)})
    done = rollback(config, output, to=signed.version)
    assert read_manifest(done.published.path).provenance["republished"]["version"] == first
