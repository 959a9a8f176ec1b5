import pytest

from slipway.components.data_gate.rule_limits import Limits
from slipway.components.errors import ComponentError


def test_a_limit_of_a_feature_comes_before_that_of_all():
    limits = Limits(max_missing_share=0.5, features={"fare": {"max_missing_share": 0.1}})
    assert (limits.of("fare", "max_missing_share"), limits.of("tips", "max_missing_share")) == (0.1, 0.5)


def test_limits_of_a_feature_that_there_is_not_are_refused():
    limits = Limits(features={"fare": {"max_missing_share": 0.1}, "compny": {"max_scale": 2.0}})
    with pytest.raises(
        ComponentError, match="'compny' is not a column of the data; nearest: company"
    ) as error:
        limits.check_features(["fare", "company"])
    assert error.value.hint == "columns that are read: fare, company"
    limits.check_features(["fare", "company", "compny"])


def test_line_break_in_the_name_of_a_column_begins_no_line():
    with pytest.raises(ComponentError) as error:
        Limits(features={"b": {"max_scale": 2.0}}).check_features(["a\nhint: do"])
    assert "\n" not in error.value.message + error.value.hint
