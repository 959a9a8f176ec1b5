import re

import pytest

from slipway.components.preflight.chip_specs import CHIPS, YOURS


@pytest.mark.parametrize("generation", [name for name, chip in CHIPS.items() if chip.price])
def test_a_price_that_is_not_yours_has_a_month_and_a_source_and_is_marked_as_not_checked(generation):
    price = CHIPS[generation].price

    assert price.usd > 0
    assert re.fullmatch(r"20\d\d-\d\d", price.month)
    assert price.source != YOURS
    assert str(price).endswith("not checked")


def test_docs_show_every_price_with_its_month(project):
    page = (project / "docs/tpu.md").read_text(encoding="utf-8")
    for generation, chip in CHIPS.items():
        shown = f"{chip.price.usd:g} | {chip.price.month}" if chip.price else "none |"
        assert f"| {generation} | {shown} |" in page, generation
