"""Every example of the cheat sheet gives what the sheet says."""

import re
from pathlib import Path

import pytest

import tilelab
from tilelab.hardware.banks import bank, bank_access
from tilelab.hardware.limits import capability
from tilelab.hardware.sectors import sector_access
from tilelab.measure.occupancy import resident

SHEET = (Path(__file__).parents[2] / "book" / "cheat-sheet.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^\| [^|]+ \| `([^`]+)` \| `([^`]+)` \|$", SHEET, re.MULTILINE)
NAMES = {**vars(tilelab), **{one.__name__: one for one in (bank, bank_access, capability, resident, sector_access)}}


def test_the_sheet_has_its_examples():
    assert len(EXAMPLES) > 30


@pytest.mark.parametrize(("call", "gives"), EXAMPLES)
def test_an_example(call, gives):
    assert str(eval(call, dict(NAMES))) == gives
