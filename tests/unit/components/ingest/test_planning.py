"""Which task reads which files, and what its shards are called."""

from slipway.components.ingest.planning import (
    LEAST_SHARD_BYTES,
    LEAST_TASK_BYTES,
    MANY_TASKS,
    MOST_SHARD_BYTES,
    TASK_BYTES,
    final_names,
    plan_tasks,
)
from slipway.components.ingest.storage import StoredFile


def test_small_files_share_a_task_and_large_ones_do_not():
    sizes = [TASK_BYTES // 2, TASK_BYTES // 2, 1, TASK_BYTES * MANY_TASKS, 5, 6]
    files = [StoredFile(f"f{i}", size) for i, size in enumerate(sizes)]
    tasks = plan_tasks({None: files}, {"train": "t", "eval": "e"}, quarantine="q", min_shards=5)
    assert [[file.name for file in task.files] for task in tasks] == [
        ["f0", "f1"],
        ["f2"],
        ["f3"],
        ["f4", "f5"],
    ]
    assert [task.lanes for task in tasks] == [2, 2, 2, 2]
    assert [task.quarantine for task in tasks] == [f"q/rows-0000{i}.jsonl" for i in range(4)]
    assert [task.skipped_bytes for task in tasks] == [0, sum(sizes[:2]), sum(sizes[:3]), sum(sizes[:4])]


def test_a_large_file_becomes_several_that_are_not_small():
    sizes = {
        1: LEAST_SHARD_BYTES,
        128 * LEAST_SHARD_BYTES: 2 * LEAST_SHARD_BYTES,
        65 * MOST_SHARD_BYTES: MOST_SHARD_BYTES,
    }
    for size, shard_bytes in sizes.items():
        [task] = plan_tasks({None: [StoredFile("f", size)]}, {"all": "a"}, quarantine="q", min_shards=1)
        assert task.shard_bytes == shard_bytes


def test_several_files_are_several_tasks_so_that_processes_end_together():
    def files_of_each_task(sizes):
        files = [StoredFile(f"f{i}", size) for i, size in enumerate(sizes)]
        tasks = plan_tasks({None: files}, {"all": "a"}, quarantine="q", min_shards=1)
        return [len(task.files) for task in tasks]

    assert files_of_each_task([LEAST_TASK_BYTES + 1] * 4) == [1, 1, 1, 1]
    assert files_of_each_task([LEAST_TASK_BYTES // 4] * 8) == [4, 4]
    many = files_of_each_task([TASK_BYTES // 8] * 100)
    assert many == [6] * 16 + [4]


def test_shards_are_named_as_tfx_names_them(ingest, write):
    found = ingest(write("a\n1\n2\n3\n"), split={"all": 1}, min_shards=2)
    names = final_names(found.report.shards, {"all": "dir"})
    assert [new for _, new in names] == [f"dir/data_tfrecord-0000{i}-of-00002.gz" for i in range(2)]
