"""The simulated GPU for kernels written in Python: ``from tilelab.simt import cuda, float32``."""

from tilelab.simt import cuda
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
from tilelab.simt.types import (
    boolean,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

__all__ = [
    "BoundsError", "BudgetError", "DivergenceError", "Finding", "LaunchError", "RaceError", "SimtError",
    "UninitialisedError", "UnsupportedError", "boolean", "cuda", "float16", "float32", "float64", "int8", "int16",
    "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip
