"""What is wrong with a setting, in words."""

from small_workload import MINIMAL

from slipway.pipeline.config import settings_errors


def test_nearest_key_is_looked_for_only_where_it_is_shown(lines_of, monkeypatch):
    asked, original = [], settings_errors._unknown_key
    monkeypatch.setattr(
        settings_errors, "_unknown_key", lambda model, path: asked.append(path) or original(model, path)
    )
    lines = lines_of(MINIMAL + "".join(f"key_{number}: 1\n" for number in range(200)))
    assert "200 problems" in lines[0]
    assert [line for line in lines if "key_9:" in line]
    assert lines[-1] == "and 190 more"
    assert len(asked) == settings_errors.MAX_PROBLEMS
