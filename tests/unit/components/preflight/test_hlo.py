from slipway.components.preflight.hlo import collective_bytes

PROGRAM = """
ENTRY %main {
  %a = f32[16,128]{1,0:T(8,128)} all-reduce(f32[16,128]{1,0} %x), replica_groups={}
  %b = (f32[4]{0}, bf16[2,3]{1,0}) all-reduce(f32[4]{0} %y, bf16[2,3]{1,0} %z)
  %c = (f32[8]{0}, f32[64]{0}) all-gather-start(f32[8]{0} %w)
  %d = f32[64]{0} all-gather-done((f32[8]{0}, f32[64]{0}) %c)
  %e = f32[] all-reduce(f32[] %s)
  %f = f32[100]{0} add(f32[100]{0} %all-reduce.1, f32[100]{0} %q)
}
"""


def test_results_of_collectives_are_added_and_asynchronous_ones_count_once():
    assert collective_bytes(PROGRAM) == 16 * 128 * 4 + (4 * 4 + 6 * 2) + 64 * 4 + 4


def test_a_program_of_one_device_sends_nothing():
    assert collective_bytes("%f = f32[100]{0} add(f32[100]{0} %p, f32[100]{0} %q)") == 0
