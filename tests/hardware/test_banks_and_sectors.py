"""Banks and sectors: known cases, and the array forms against the plain ones."""

import numpy as np
import pytest

from tilelab.hardware.banks import bank_access, bank_counts
from tilelab.hardware.limits import HardwareError
from tilelab.hardware.sectors import sector_access, warp_traffic


def floats(word_of_lane, lanes=32):
    return [4 * word_of_lane(lane) for lane in range(lanes)]


TILE = {
    "sA[ty][k]": (lambda lane: lane // 16 * 16 + 5, 1),
    "sB[k][tx]": (lambda lane: 5 * 16 + lane % 16, 1),
    "sA[tx][k]": (lambda lane: lane % 16 * 16 + 5, 8),
    "column of [32][32]": (lambda lane: lane * 32 + 7, 32),
    "column of [32][33]": (lambda lane: lane * 33 + 7, 1),
    "row of an XOR swizzle": (lambda lane: 7 * 32 + (lane ^ 7), 1),
    "column of an XOR swizzle": (lambda lane: lane * 32 + (7 ^ lane), 1),
    "stride 1": (lambda lane: lane, 1),
    "stride 2": (lambda lane: 2 * lane, 2),
    "stride 3": (lambda lane: 3 * lane, 1),
    "stride 16": (lambda lane: 16 * lane, 16),
    "one word": (lambda lane: 11, 1),
    "register tile, reads of TN = 8 floats": (lambda lane: lane % 16 * 8, 4),
    "transposed store of 4 floats a thread, pitch 64": (lambda lane: lane % 2 * 4 * 64 + lane // 2, 2),
    "the same, pitch 68": (lambda lane: lane % 2 * 4 * 68 + lane // 2, 1),
    "the same, pitch 65": (lambda lane: lane % 2 * 4 * 65 + lane // 2, 2),
}


@pytest.mark.parametrize("case", TILE)
def test_known_conflicts(case):
    word, ways = TILE[case]
    access = bank_access(floats(word))
    assert (access.ways, access.wavefronts, access.parts, access.replays) == (ways, ways, 1, ways - 1)


@pytest.mark.parametrize(("stride", "ways"), [(64, 4), (128, 8), (80, 1), (144, 1)])
def test_ldmatrix_rows(stride, ways):
    assert bank_access([row * stride for row in range(8)], 16).ways == ways


def test_wide_loads_are_served_in_parts():
    assert bank_access([16 * lane for lane in range(32)], 16).wavefronts == 4
    assert bank_access([8 * lane for lane in range(32)], 8).wavefronts == 2
    # Two 16-byte words, each wanted by half a warp: the quarters of each half share, so two wavefronts.
    assert bank_access([64 * (lane // 16) for lane in range(32)], 16).wavefronts == 2
    assert bank_access([0] * 32, 8).wavefronts == 1


@pytest.mark.parametrize(
    ("addresses", "sectors"),
    [
        (floats(lambda lane: lane), 4),
        (floats(lambda lane: lane * 1024), 32),
        (floats(lambda lane: lane + 1), 5),
        (floats(lambda lane: 2 * lane), 8),
        (floats(lambda lane: lane // 16 * 1024 + lane % 16), 4),
    ],
)
def test_known_sectors(addresses, sectors):
    assert sector_access(addresses).sectors == sectors


def test_sector_efficiency():
    assert sector_access([16 * lane for lane in range(32)], 16).sectors == 16
    apart = sector_access(floats(lambda lane: 8 * lane))
    assert (apart.efficiency, apart.minimum, apart.used) == (1 / 8, 4, 128)
    assert sector_access([None] * 32).efficiency == 1.0


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_arrays_agree_with_single_warps(width):
    rng = np.random.default_rng(width)
    warps = 600
    span = rng.choice([4, 40, 400], (warps, 1))
    units = rng.integers(0, span, (warps, 32))
    # a part of the warps has lanes that share with a neighbour, so that parts join
    units[::3] = units[::3, np.arange(32) & ~1]
    units[1::3] = units[1::3, np.arange(32) & ~2]
    addresses = units * width
    active = rng.random((warps, 32)) < rng.choice([0.0, 0.1, 0.9, 1.0], (warps, 1))
    for mask in (None, active):
        on = np.ones_like(active) if mask is None else mask
        parts, wavefronts, ways = bank_counts(addresses, width, mask)
        sectors, distinct = warp_traffic(addresses, width, mask)
        for w in range(warps):
            lanes = [int(a) if x else None for a, x in zip(addresses[w], on[w], strict=True)]
            access, asked = bank_access(lanes, width), sector_access(lanes, width)
            assert (access.parts, access.wavefronts, access.ways) == (parts[w], wavefronts[w], ways[w])
            assert (asked.sectors, asked.used) == (sectors[w], distinct[w] * width)


def test_impossible_accesses_are_refused():
    with pytest.raises(HardwareError, match="lane 1: address 6 is not a multiple of the 4 bytes"):
        bank_access([0, 6])
    with pytest.raises(HardwareError, match="a warp has 32 lanes, not 33"):
        sector_access([0] * 33)
    with pytest.raises(HardwareError, match="not 3"):
        sector_access([0], 3)
