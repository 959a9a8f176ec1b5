"""Each mistake leads to one message with the remedy, the right exit code, and nothing half done.

Seen only here: what the whole command line makes of it: its exit code, its one message, and no folder left.
"""

import pytest

HEADER = "fare,tips,trip_miles,payment_type"


@pytest.fixture
def refused(warm_runner, tmp_path):
    """Runs with arguments that must be refused; returns what the screen says."""

    def call(*args, code=2, runner=warm_runner):
        finished = runner("run", *args, "--output", str(tmp_path / "output"))
        assert finished.returncode == code, finished.stderr
        assert "Traceback" not in finished.stderr
        assert finished.stderr.startswith("error: ")
        assert not (tmp_path / "output").exists()
        return finished.stderr

    return call


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_missing_workload_file_is_named(refused, local_runner):
    assert "no/such/workload.yaml" in refused("no/such/workload.yaml", runner=local_runner)


def test_missing_data_file_is_named(refused, tmp_path):
    said = refused("--set", f"data.source={tmp_path}/trips.csv")
    assert "trips.csv" in said
    assert "hint:" in said


def test_empty_data_file_is_refused(refused, tmp_path):
    assert "empty" in refused("--set", f"data.source={written(tmp_path / 'trips.csv', '')}")


def test_data_file_with_a_header_alone_is_refused(refused, tmp_path):
    assert "row" in refused("--set", f"data.source={written(tmp_path / 'trips.csv', HEADER)}")


def test_data_without_the_label_column_names_it_and_the_columns_there_are(refused, tmp_path):
    said = refused("--set", f"data.source={written(tmp_path / 'trips.csv', 'fare,tip' + chr(10) + '1,2')}")
    assert "tips" in said
    assert "tip" in said.replace("tips", "").replace("trips", "")


def test_profiled_steps_in_the_wrong_order_are_refused_before_anything_runs(refused):
    assert "train.profile_steps='20:10': counts from 1" in refused("--profile-steps", "20:10")


def test_unknown_key_is_refused_with_line_and_nearest_name(refused, project, tmp_path):
    text = (project / "workloads/taxi/workload.yaml").read_text(encoding="utf-8")
    wrong = text.replace("batch_size:", "batch_siz:")
    line = 1 + wrong[: wrong.index("batch_siz:")].count("\n")
    said = refused(str(written(tmp_path / "workload.yaml", wrong)))
    assert f"workload.yaml:{line}: train.batch_siz" in said
    assert "batch_size" in said


def test_wrong_type_is_refused_with_the_value(refused):
    said = refused("--set", "train.epochs=many")
    assert "train.epochs" in said
    assert "many" in said


def test_batch_size_of_zero_is_refused_with_the_rule(refused):
    said = refused("--set", "train.batch_size=0")
    assert "train.batch_size" in said
    assert "at least 1" in said


def test_preprocessing_function_that_does_not_exist_is_refused_with_the_nearest(refused):
    said = refused("--set", "transform.preprocessing_fn=workloads.taxi.preprocessing.preprocess")
    assert "no function preprocess; nearest: preprocessing_fn" in said


def test_module_that_does_not_exist_is_refused(refused):
    assert "workloads.taksi" in refused("--set", "train.model=workloads.taksi.model.build_model")


def test_unknown_command_and_unknown_option_end_with_code_2(warm_runner):
    assert warm_runner("rnu").returncode == 2
    assert warm_runner("run", "--jbos", "2").returncode == 2


def test_verbose_shows_the_traceback(local_runner, tmp_path):
    finished = local_runner("run", "nowhere.yaml", "--verbose", "--output", str(tmp_path))
    assert "Traceback" in finished.stderr
