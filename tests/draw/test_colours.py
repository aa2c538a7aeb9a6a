"""Legibility is measured, not hoped for."""

import pytest

from tilelab.draw.colours import DISTINCT, contrast, luminance, ramp, text_on
from tilelab.draw.svg import ROLES


def test_text_on_every_colour_has_the_contrast_of_wcag_aa():
    for colour in [*DISTINCT, *(ramp(i / 31) for i in range(32))]:
        assert contrast(colour, text_on(colour)) >= 4.5, colour


@pytest.mark.parametrize("theme", [0, 1])
def test_labels_have_the_contrast_of_wcag_aa_in_both_themes(theme):
    for role in ("ink", "faint"):
        assert contrast(ROLES[role][theme], ROLES["card"][theme]) >= 4.5, role


def test_the_ramp_reads_without_colour():
    lights = [luminance(ramp(i / 31)) for i in range(32)]
    assert lights == sorted(lights, reverse=True)
