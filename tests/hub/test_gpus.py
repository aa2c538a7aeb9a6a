"""Who gets which GPU, and what the page says about them."""

from collections import Counter

import pytest


def test_a_seat_is_at_the_gpu_with_the_fewest():
    from deployment import Gpu
    from gpus import free_device

    gpu = Gpu(devices=(0, 1), seats=2)
    assert free_device(Counter(), gpu) == 0
    assert free_device(Counter({0: 1}), gpu) == 1
    assert free_device(Counter({0: 2, 1: 1}), gpu) == 1
    assert free_device(Counter({0: 2, 1: 2}), gpu) is None
    assert free_device(Counter(), Gpu()) is None


def test_the_form_offers_two_profiles_and_takes_nothing_else():
    from deployment import Gpu
    from gpus import Profiles

    profiles = Profiles(Gpu(devices=(0,)))
    assert profiles.chosen({"profile": ["gpu"]}) == {"profile": "gpu"}
    for form in ({}, {"profile": ["none"]}, {"profile": ["gpu", "gpu"]}, {"profile": ["root"]}):
        assert profiles.chosen(form) == {"profile": "none"}
    assert Profiles(Gpu()).form(None) == "", "without devices nobody is asked"


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("0, 12345, 81559\n1, 0, 81559\n", {0: "12.1 of 79.6 GiB", 1: "0.0 of 79.6 GiB"}),
        ("0, [N/A], [N/A]\n", {}),
        ("", {}),
    ],
)
def test_what_nvidia_smi_says_is_read(said, found):
    from gpus import read_memory

    assert read_memory(said) == found
