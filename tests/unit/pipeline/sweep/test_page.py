"""A sweep's page: one line a trial, the best, links to runs."""

from slipway.pipeline.sweep.page import gather, write_page
from slipway.pipeline.sweep.record import Sweep, Trial


def made(output, trials, **facts):
    sets = ("train.batch_size=128,256", "train.hyperparameters.learning_rate=log(1e-4,1e-2)")
    return Sweep(
        "20261123-000000-0001", "taxi", "taxi", sets, None, "bayes", 4, "auc", False, done=trials,
        output=output, **facts,
    )  # fmt: skip


def trial(size, rate, value, **facts):
    params = {"train.batch_size": size, "train.hyperparameters.learning_rate": rate}
    state = "failed" if value is None else "complete"
    return Trial(params, f"run-{size}-{rate}", state, value, 3.0, **facts)


def test_lines_go_from_settings_to_the_metric_and_the_best_is_last(tmp_path):
    page = gather(made(tmp_path, [trial("256", "1.0e-04", 0.9), trial("128", "0.001", 0.8)]))
    assert [axis.name for axis in page.axes] == ["batch_size", "learning_rate", "auc"]
    assert page.axes[2].marks == (("0.8000", 250.0), ("0.9000", 30.0))
    assert [line.is_best for line in page.lines] == [False, True]
    assert page.lines[0].points == "60.0,250.0 210.0,140.0 360.0,250.0"
    assert page.lines[1].told == "auc 0.9000: batch_size 256, learning_rate 1.0e-04"


def test_the_page_tells_the_best_its_spread_and_how_to_push_it(tmp_path):
    first = trial("256", "0.001", 0.9)
    seeds = [trial("256", "0.001", value, seed=seed) for seed, value in ((2, 0.8), (3, 0.85))]
    (tmp_path / "runs" / first.run_id).mkdir(parents=True)
    (tmp_path / "runs" / first.run_id / "report.html").touch()
    sweep = made(tmp_path, [first, trial("128", "0.01", None, why="Trainer: <b>no</b>"), *seeds])
    sweep.save()
    text = write_page(sweep).read_text()
    assert "over 3 seeds: mean 0.8500, standard deviation 0.05" in text
    assert "run taxi --set train.batch_size=256" in text
    assert 'href="./../../runs/run-256-0.001/report.html"' in text
    assert "Trainer: &lt;b&gt;no&lt;/b&gt;" in text
    assert "default-src &#39;none&#39;" in text
    assert "http" not in text.replace("http-equiv", "")


def test_equal_values_lie_in_the_middle(tmp_path):
    page = gather(made(tmp_path, [trial("256", "0.001", 0.9)]))
    assert page.axes[2].marks == (("0.9000", 140.0),)


def test_a_sweep_without_a_value_has_no_picture(tmp_path):
    sweep = made(tmp_path, [trial("128", "0.01", None)])
    sweep.save()
    text = write_page(sweep).read_text()
    assert "No trial has a value." in text
    assert "<polyline" not in text


def test_a_pruned_trial_is_in_the_table_and_not_in_the_picture(tmp_path):
    pruned = trial("128", "0.01", None, why="after epoch 2, it is <bad>", curve=[(1, 0.5), (2, 0.4)])
    pruned.state = "pruned"
    sweep = made(tmp_path, [trial("256", "0.001", 0.9), pruned], prune_after=2, prune_by="val_auc")
    sweep.save()
    page = gather(sweep)
    assert (page.rows[1].state, page.rows[1].note, page.rows[1].is_best) == (
        "pruned", "after epoch 2, it is <bad>", False,
    )  # fmt: skip
    assert len(page.lines) == 1
    text = write_page(sweep).read_text()
    assert "pruned after epoch 2 or later, by val_auc" in text
    assert "after epoch 2, it is &lt;bad&gt;" in text
