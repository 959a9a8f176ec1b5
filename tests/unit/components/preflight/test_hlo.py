from dataclasses import replace

import pytest

from slipway.components.preflight.hlo import Sent, collectives

PROGRAM = """
ENTRY %main.1 (x: f32[16,128]) -> f32[] {
  %a = f32[16,128]{1,0:T(8,128)} all-reduce(f32[16,128]{1,0} %x), replica_groups={}
  %b = (f32[4]{0}, bf16[2,3]{1,0}) all-reduce(f32[4]{0} %y, bf16[2,3]{1,0} %z)
  %c.1 = (f32[8]{0}, f32[64]{0}) all-gather-start(f32[8]{0} %w), replica_groups={{0,2},{1,3}}
  %d = f32[64]{0} all-gather-done((f32[8]{0:T(128)}, f32[64]{0:T(128)}) %c.1)
  ROOT %e = f32[] all-reduce(f32[] %s)
  %f = f32[100]{0} add(f32[100]{0} %all-reduce.1, f32[100]{0} %q)
  %g = bf16[8]{0} reduce-scatter(bf16[16]{0} %h), replica_groups={{4,5},{6,7}}, dimensions={0}
  %i = f32[2]{0} collective-permute(%j), source_target_pairs={{0,1},{1,0}}
  %k = f32[2]{0} all-to-all(%l), replica_groups=[2,2]<=[4], dimensions={0}
}
"""


def test_each_collective_is_read_once_with_its_kind_its_bytes_and_its_group():
    found = list(collectives(PROGRAM))

    assert {each.computation for each in found} == {"main.1"}
    assert [replace(each, computation="") for each in found] == [
        Sent(kind="all-reduce", result_bytes=16 * 128 * 4),
        Sent(kind="all-reduce", result_bytes=4 * 4 + 6 * 2),
        Sent(kind="all-gather", result_bytes=64 * 4, members=(0, 2)),
        Sent(kind="all-reduce", result_bytes=4),
        Sent(kind="reduce-scatter", result_bytes=8 * 2, members=(4, 5)),
        Sent(kind="collective-permute", result_bytes=8, pairs=((0, 1), (1, 0))),
        Sent(kind="all-to-all", result_bytes=8, members=(0, 1)),
    ]


def test_a_program_of_one_device_sends_nothing():
    assert list(collectives("%f = f32[100]{0} add(f32[100]{0} %p, f32[100]{0} %q)")) == []


@pytest.mark.parametrize(
    ("groups", "members"),
    [
        ("{{0,1},{2,3}}", (0, 1)),
        ("[2,4]<=[8]", (0, 1, 2, 3)),
        ("[2,4]<=[4,2]T(1,0)", (0, 2, 4, 6)),
        ("mesh['axis_0'=16,'axis_1'=1] {'axis_0'}", tuple(range(16))),
        ("mesh['axis_0'=2,'axis_1'=3,'axis_2'=2] {'axis_0','axis_2'}", (0, 1, 6, 7)),
        ("{}", ()),
    ],
)
def test_groups_are_read_in_each_form_that_the_compiler_writes(groups, members):
    line = (
        f"%a = f32[4]{{0}} all-reduce(%x), channel_id=1, replica_groups={groups}, use_global_device_ids=true"
    )

    assert [each.members for each in collectives(line)] == [members]


# As libtpu 0.0.42.1 writes the gradients of weights that the batch's devices share out.
SCATTERED = """
%all-reduce-scatter.1 (input: f32[2048,1024]) -> f32[256,1024] {
  %all-reduce.2 = f32[2048,1024]{1,0:T(8,128)} all-reduce(%input), replica_groups={{0,1,2,3,4,5,6,7}}
  ROOT %dynamic-slice.3 = f32[256,1024]{1,0:T(8,128)} dynamic-slice(%all-reduce.2, %multiply.2, %constant.13)
}

ENTRY %main.0_spmd (x: f32[2048,1024]) -> f32[256,1024] {
  %a = f32[256,1024]{1,0:T(8,128)} reduce-scatter(%x), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}
  ROOT %fusion = f32[256,1024]{1,0:T(8,128)} fusion(%x), kind=kCustom, calls=%all-reduce-scatter.1
}
"""


def test_an_all_reduce_of_which_a_part_is_kept_is_the_reduce_scatter_that_it_is():
    within, alone = collectives(SCATTERED)

    assert (within.kind, within.computation) == ("reduce-scatter", "all-reduce-scatter.1")
    assert replace(within, computation=alone.computation) == alone
    # By its result: each device keeps an eighth.
    assert alone.result_bytes == 256 * 1024 * 4


@pytest.mark.parametrize(("kind", "size_bytes"), [("f8e4m3fn", 1), ("bf16", 2), ("f32", 4), ("s64", 8)])
def test_bytes_of_a_number_follow_from_its_type(kind, size_bytes):
    [sent] = collectives(f"%a = {kind}[3,5]{{1,0}} all-gather(%x), dimensions={{0}}")

    assert sent.result_bytes == 15 * size_bytes
