"""Every example of the cheat sheet gives what the sheet says."""

import re
from pathlib import Path

import pytest

import tilelab
from tilelab.hardware.banks import bank, bank_access
from tilelab.hardware.sectors import sector_access

SHEET = (Path(__file__).parents[2] / "book" / "cheat-sheet.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^\| [^|]+ \| `([^`]+)` \| `([^`]+)` \|$", SHEET, re.MULTILINE)
NAMES = {**vars(tilelab), "bank": bank, "bank_access": bank_access, "sector_access": sector_access}


def test_the_sheet_has_its_examples():
    assert len(EXAMPLES) > 30


@pytest.mark.parametrize(("call", "gives"), EXAMPLES)
def test_an_example(call, gives):
    assert str(eval(call, dict(NAMES))) == gives
