"""The back-fills in docs/airflow.md: of several days, one after the other."""

import re


def test_a_back_fill_of_several_days_runs_one_at_a_time(project):
    """Airflow's own default is ten at once, of which the last to end would be the one that is served."""
    page = (project / "docs" / "airflow.md").read_text(encoding="utf-8").replace("\\\n", "")
    found = re.findall(
        r"^    \S*airflow backfill create .*--from-date (\S+) .*--to-date (\S+)(.*)$", page, re.MULTILINE
    )
    of_several = [more for first, last, more in found if first != last]
    assert of_several
    assert all("--max-active-runs 1" in more for more in of_several)
