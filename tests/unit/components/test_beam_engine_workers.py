"""Tasks on another Beam runner: what comes back, in which order, and what happens when one fails."""

import pytest

from slipway.components.errors import ComponentError

pytestmark = pytest.mark.slow


@pytest.fixture
def engine(tmp_path):
    """Beam's other runner inside the process, whose results go through files as those of any other."""
    import apache_beam as beam

    from slipway.components.beam_engine_workers import BeamEngineWorkers

    with BeamEngineWorkers(
        lambda: beam.Pipeline("BundleBasedDirectRunner"), str(tmp_path / "engine")
    ) as workers:
        yield workers
    assert not (tmp_path / "engine").exists()


def twice(task, progress):
    progress(task, 0)
    return 2 * task


def fails_from_2_on(task, progress):
    if task >= 2:
        raise ComponentError(f"task {task} is wrong", hint="mend it")
    return task


def without_memory(task, progress):
    raise MemoryError


def breaks(task, progress):
    raise ValueError("no connection")


def never(task, rows, done_bytes):
    raise AssertionError


def test_results_come_in_the_order_of_the_tasks_time_after_time(engine):
    assert list(engine.map(twice, range(20), progress=never)) == list(range(0, 40, 2))
    assert list(engine.map(twice, [7], progress=never)) == [14]
    assert list(engine.map(twice, [], progress=never)) == []


def test_what_our_own_code_says_of_a_task_is_raised_as_it_was_and_of_several_the_first(engine):
    results = engine.map(fails_from_2_on, range(5), progress=never)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ComponentError, match="task 2 is wrong") as error:
        next(results)
    assert error.value.hint == "mend it"
    assert "fails_from_2_on" in str(error.value.__cause__)


def test_any_other_error_is_the_engine_s(engine):
    with pytest.raises(Exception, match="no connection"):
        engine.map(breaks, [1], progress=never)


def test_a_task_without_memory_is_done_the_other_way_and_counted(engine):
    assert list(engine.map(without_memory, [1, 2], progress=never, again=twice)) == [2, 4]
    assert engine.redone == 2
    assert list(engine.map(twice, [3], progress=never, again=twice)) == [6]
    assert engine.redone == 2
    with pytest.raises(Exception, match="MemoryError"):
        engine.map(without_memory, [1], progress=never)


def test_a_result_that_another_has_written_is_not_read(engine, tmp_path):
    results = engine.map(twice, [1, 2], progress=never)
    first, second = sorted((tmp_path / "engine/results-1").iterdir())
    first.write_bytes(second.read_bytes())
    with pytest.raises(RuntimeError, match="not written by this run's own workers"):
        next(results)


def test_a_result_that_is_not_there_tells_of_the_folder(engine, tmp_path):
    results = engine.map(twice, [1], progress=never)
    (tmp_path / "engine/results-1/0").unlink()
    with pytest.raises(ComponentError, match=r"left no result in .*results-1") as error:
        next(results)
    assert "beam.runner=direct" in error.value.hint


def test_a_folder_is_copied_only_where_the_engine_cannot_read_it(engine, monkeypatch, tmp_path):
    from slipway.components import beam_engine_workers

    copied = []
    monkeypatch.setattr(beam_engine_workers.io_utils, "copy_dir", lambda *given: copied.append(given))
    assert engine.reachable(str(tmp_path)) == str(tmp_path)
    assert engine.reachable("gs://bucket/graph") == "gs://bucket/graph"
    assert copied == []
    in_a_bucket = beam_engine_workers.BeamEngineWorkers(lambda: None, "gs://bucket/engine")
    assert in_a_bucket.reachable("/local/graph-1") == "gs://bucket/engine/graph-1"
    assert in_a_bucket.reachable("gs://bucket/graph") == "gs://bucket/graph"
    assert copied == [("/local/graph-1", "gs://bucket/engine/graph-1")]


@pytest.mark.parametrize(
    ("args", "elsewhere"),
    [
        (["--runner=FnApiRunner"], False),
        (["--runner=FlinkRunner"], True),
        (["--runner=FlinkRunner", "--runner=FnApiRunner"], False),
    ],
)
def test_where_work_is_done_is_reported_by_the_runner(args, elsewhere):
    from slipway.components.beam_engine_workers import runs_elsewhere

    assert runs_elsewhere(args) is elsewhere


class ExecutorWith:
    """What `make_workers` asks of an executor: Beam's options and pipelines of them."""

    def __init__(self, *beam_args):
        self._beam_pipeline_args = list(beam_args) or None
        self._make_beam_pipeline = None


@pytest.mark.parametrize(("readings", "workers", "others"), [((1, 3), 0, 2), ((3, 1), 2, 1), ((1, 1), 0, 0)])
def test_processes_of_this_machine_are_as_many_as_the_largest_reading_pays_for(
    readings, workers, others, monkeypatch
):
    from slipway.components import beam_engine_workers, python_process, shards
    from slipway.components.in_process_runner import IN_PROCESS
    from slipway.components.process_pool import ProcessPool

    monkeypatch.setattr(shards, "available_memory_bytes", lambda: 100 << 30)
    monkeypatch.setattr(shards.os, "sched_getaffinity", lambda _: set(range(4)))
    monkeypatch.setattr(python_process, "fork_channel", object())
    made = beam_engine_workers.make_workers(
        ExecutorWith(f"--runner={IN_PROCESS}", f"--direct_num_workers={workers}"),
        *([shards.Shard("train", place, of, (f"f{place}",), 8) for place in range(of)] for of in readings),
        folder="unused",
        bytes_per_process=8,
    )
    assert isinstance(made, ProcessPool)
    assert made.others == others


def test_another_engine_that_the_options_name_works_in_the_folder(tmp_path):
    from slipway.components.beam_engine_workers import BeamEngineWorkers, make_workers

    asked = ExecutorWith("--runner=FlinkRunner")
    with make_workers(asked, [], folder=str(tmp_path / "engine"), bytes_per_process=1) as workers:
        assert isinstance(workers, BeamEngineWorkers)
        assert (tmp_path / "engine").is_dir()
