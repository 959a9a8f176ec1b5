"""The settings of an ingest."""

from slipway.components.ingest.options import Options


def test_options_survive_the_way_to_a_worker():
    options = Options(columns=("a",), split_by={"key": "a"}, compression="none", quote=None)
    assert Options.from_json(options.to_json()) == options


class Name(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def test_names_of_a_header_are_not_compared_each_with_each(monkeypatch):
    names = tuple(Name(f"c{index}") for index in range(2000))
    Name.compared = 0
    assert Options(columns=names).chosen(names, file="in.csv") == names
    assert Name.compared <= 10_000


AS_IN_A_CSV = Options(format="parquet", null_values=("NA", "-999", "nan", "0.5", "-99.9"), trained_as="csv")


def test_rule_of_another_format_is_no_setting_of_an_ingest():
    assert "trained_as" not in AS_IN_A_CSV.to_json()
