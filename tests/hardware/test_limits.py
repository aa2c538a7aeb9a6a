"""Limits of chips, and launches they refuse."""

import pytest

from tilelab.hardware.limits import (
    CAPABILITIES,
    DEVICES,
    HardwareError,
    capability,
    device,
    launch_problems,
)

KIB = 1024


@pytest.mark.parametrize(
    ("name", "optin"),
    [("sm_80", 163), ("sm_86", 99), ("sm_89", 99), ("sm_90", 227), ("sm_100", 227), ("sm_120", 99)],
)
def test_opt_in_shared_memory_of_a_block(name, optin):
    chip = CAPABILITIES[name]
    assert chip.shared_optin == optin * KIB
    assert chip.shared_static == 48 * KIB
    assert chip.shared_per_sm == chip.shared_optin + chip.shared_reserved


@pytest.mark.parametrize("which", ["sm_90", "sm_90a", "9.0", (9, 0), "H200", "NVIDIA H100 80GB HBM3", DEVICES["H100"]])
def test_a_capability_has_many_names(which):
    assert capability(which) is CAPABILITIES["sm_90"]


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(HardwareError, match=r"'RTX 9999'; known: .*RTX 4090.*sm_90"):
        capability("RTX 9999")


def test_driver_names_find_the_longest_match():
    assert device("NVIDIA H100 PCIe").name == "H100 PCIe"
    assert device("NVIDIA GeForce RTX 4090").name == "RTX 4090"
    assert device("NVIDIA A100-SXM4-80GB").name == "A100"


def test_ridge_points():
    assert device("H200").ridge() == pytest.approx(13.9, abs=0.05)
    assert device("H200").ridge("bf16") == pytest.approx(206, abs=0.5)
    assert device("H100").ridge("bf16") == pytest.approx(295, abs=0.5)
    with pytest.raises(HardwareError, match="A100 has no 'fp8' peak"):
        device("A100").ridge("fp8")


def test_every_launch_limit_is_named():
    chip = capability("RTX 4090")
    assert launch_problems(chip, (1,), (32, 32), 48 * KIB) == []
    assert "4096 threads a block" in launch_problems(chip, (1,), (64, 64))[0]
    assert "block extent z = 65" in launch_problems(chip, (1,), (1, 1, 65))[0]
    assert "grid extent y = 65536" in launch_problems(chip, (1, 65536), (1,))[0]
    assert "grid extent x = 0" in launch_problems(chip, (0,), (1,))[0]
    assert "use dynamic" in launch_problems(chip, (1,), (1,), 48 * KIB + 4)[0]
    assert launch_problems(chip, (1,), (1,), 0, 99 * KIB) == []
    assert "even with opt-in" in launch_problems(chip, (1,), (1,), 0, 99 * KIB + 1)[0]
    assert "4 extents" in launch_problems(chip, (1, 1, 1, 1), (1,))[0]


@pytest.mark.parametrize("name", ["H2000", "H100X", "RTX 40900", "A"])
def test_a_name_that_only_begins_like_a_card_is_none(name):
    with pytest.raises(HardwareError, match=name):
        device(name)
