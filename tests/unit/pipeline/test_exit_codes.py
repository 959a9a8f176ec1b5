"""The exit codes that scripts rely on."""

import re

import pytest
from called import called

from slipway.pipeline import exit_codes

CODES = {value for name, value in vars(exit_codes).items() if name.isupper()}


@pytest.mark.parametrize("runner", ["local_runner", "cloud_runner"])
def test_help_tells_each_exit_code_and_no_other(runner):
    told = called(runner, "--help").stdout
    assert set(map(int, re.findall(r"\b(\d+)\b", told[told.index("Exit code") :]))) == CODES
