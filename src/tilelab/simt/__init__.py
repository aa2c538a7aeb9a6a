"""The simulated GPU for kernels written in Python: ``from tilelab.simt import cuda, float32``."""

from tilelab.simt import cuda, types
from tilelab.simt.errors import (
    BoundsError,
    BudgetError,
    DivergenceError,
    Finding,
    LaunchError,
    RaceError,
    SimtError,
    UninitialisedError,
    UnsupportedError,
)
from tilelab.simt.types import *  # noqa: F403  (the number types)

__all__ = [
    "BoundsError", "BudgetError", "DivergenceError", "Finding", "LaunchError", "RaceError", "SimtError",
    "UninitialisedError", "UnsupportedError", "cuda",
]  # fmt: skip
__all__ += types.__all__
