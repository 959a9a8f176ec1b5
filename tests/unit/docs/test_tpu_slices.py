"""The slices that the docs name are those of the code, with their chips, hosts and machines."""

import re

import pytest

from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.other_slices import OTHER_SLICES
from slipway.pipeline.wiring.preflight_question import named_slices
from slipway.pipeline.wiring.vertex_tpu_slices import TPU_SLICES

NAME = r"v\d[ep]?-\d+"
# On which others measured, see published_steps.py; they are not compiled for.
PUBLISHED_ONLY = {"v2-32", "v3-32", "v3-128", "v4-384", "v4-1024", "v4-2048", "v4-4096"} | {
    f"v5p-{cores}" for cores in (1024, 2048, 4096)
}


@pytest.fixture(scope="module")
def tpu_page(project):
    return (project / "docs/tpu.md").read_text(encoding="utf-8")


def between(first, last):
    """The names of a generation's slices from one to another."""
    names = [each.name for each in named_slices(first.partition("-")[0])]
    return names[names.index(first) : names.index(last) + 1]


def rented_rows(page):
    """The names in each row of the table of docs/cloud.md, and the other cells."""
    for row in re.findall(rf"^\| (`{NAME}`.*) \|$", page, re.MULTILINE):
        named, machine, hosts, backends = row.split(" | ")
        first, *others = re.findall(r"`(.+?)`", named)
        generation = first.partition("-")[0]
        names = [first, *(f"{generation}{each}" if each.startswith("-") else each for each in others)]
        yield between(*names) if "to" in named.split() else names, machine, hosts, backends


def test_each_slice_of_vertex_ai_is_in_the_table_once_with_its_machine_hosts_and_backends(project):
    rows = list(rented_rows((project / "docs/cloud.md").read_text(encoding="utf-8")))
    assert [name for names, *_ in rows for name in names] == list(TPU_SLICES)
    shown = {"v6e-1": "1x1, 2x2, 2x4", "v6e-16": "4x4 to 16x16"}  # which are "as v5e"
    for names, machine, hosts, backends in rows:
        slices = [TPU_SLICES[name] for name in names]
        counts = list(dict.fromkeys(str(each.hosts) for each in slices))
        assert hosts == (f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else counts[0])
        assert backends == ("jax, tensorflow" if names[0] in {"v2-8", "v5e-1"} else "jax")
        assert (backends != "jax") == all(each.has_tensorflow and each.hosts == 1 for each in slices)
        kinds = [each.machine["machineType"] for each in slices]
        form = re.search(r"`(.+?)`", machine)[1].replace("{1,4,8}", "[148]")
        assert all(re.fullmatch(form, kind) for kind in kinds), (form, kinds)
        topologies = [each.machine["tpuTopology"] for each in slices if "tpuTopology" in each.machine]
        if topologies:
            ranged = f"{topologies[0]} to {topologies[-1]}" if len(counts) > 1 else ", ".join(topologies)
            assert machine.endswith(f", {ranged}") or (
                machine.endswith(", as v5e") and ranged == shown[names[0]]
            )


def test_each_slice_of_several_hosts_is_named_where_they_are_explained(tpu_page):
    [section] = re.findall(r"(?s)## Slices of several hosts\n.+?screen says", tpu_page)
    named = {name for ends in re.findall(rf"`({NAME})` to\s`({NAME})`", section) for name in between(*ends)}
    assert "`--tpu v5e-16` and larger" in section
    named |= set(between("v5e-16", "v5e-256"))
    several = {each.name for name in CHIPS for each in named_slices(name) if each.hosts > 1}
    assert named == several | (OTHER_SLICES.keys() & {"v4-8", "v5p-8"})
    assert named_slices("v5e")[-1].name == "v5e-256"


def test_every_other_slice_in_the_docs_can_be_named(project):
    found = {
        name
        for page in [project / "README.md", *(project / "docs").glob("*.md")]
        for name in re.findall(rf"\b{NAME}\b", page.read_text(encoding="utf-8"))
    }
    assert found - TPU_SLICES.keys() - OTHER_SLICES.keys() == PUBLISHED_ONLY


def test_tables_of_scaling_have_each_slice_with_its_chips_and_hosts_and_add_up(tpu_page):
    tables = re.findall(r"    estimate of v5e by slice.+\n    slice .+\n((?:    v5e-.+\n)+)", tpu_page)
    assert len(tables) == 2
    for table in tables:
        rows = [re.split(r"\s{2,}", row.strip()) for row in table.splitlines()]
        assert [(name, int(chips), int(hosts)) for name, chips, hosts, *_ in rows] == [
            (each.name, each.chips, each.hosts) for each in TPU_SLICES.values() if each.generation == "v5e"
        ]
        for _, chips, _, _, _, faster, of_chip, *_ in rows:
            assert float(faster[:-1]) / int(chips) == pytest.approx(float(of_chip[:-1]) / 100, abs=0.0051)
