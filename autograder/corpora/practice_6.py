"""Practice 6: against cuBLAS."""

import numpy as np

REPORT = {"device": "H200", "tiled_ms": 0.288, "cublas_ms": 0.0756, "tf32": False}

RIGHT = {"report": REPORT, "statement": {"a": True, "b": True, "c": True, "d": False}}
PENDING = {"measurement": 4}

WRONG = {
    "the launch timed, not the kernel": (
        {"report": {**REPORT, "tiled_ms": 0.009, "cublas_ms": 0.008}},
        {"measurement": 0},
    ),
    "TF32 left on": ({"report": {**REPORT, "cublas_ms": 0.029, "tf32": True}}, {"measurement": 0}),
    "TF32 left on and not said": ({"report": {**REPORT, "cublas_ms": 0.0112}}, {"measurement": 0}),
    "seconds": ({"report": {**REPORT, "tiled_ms": 0.000288, "cublas_ms": 0.0000756}}, {"measurement": 0}),
    "microseconds": ({"report": {**REPORT, "tiled_ms": 288.0, "cublas_ms": 75.6}}, {"measurement": 0}),
    "a time as text": ({"report": {**REPORT, "tiled_ms": "0.288"}}, {"measurement": 0}),
    "all runs instead of their median": ({"report": {**REPORT, "tiled_ms": [0.288, 0.29]}}, {"measurement": 0}),
    "tf32 in words": ({"report": {**REPORT, "tf32": "off"}}, {"measurement": 0}),
    "tf32 not said": (
        {"report": {name: value for name, value in REPORT.items() if name != "tf32"}},
        {"measurement": 0},
    ),
    "other names for the times": (
        {"report": {"device": "H200", "tiled": 0.288, "cublas": 0.0756, "tf32": False}},
        {"measurement": 0},
    ),
    "one statement left open": ({"statement": {"a": True, "b": True, "c": True, "d": None}}, {"statement": 1.5}),
    "the first call": ({"report": {**REPORT, "cublas_ms": 412.0}}, {"measurement": 0}),
    "no device": ({"report": {**REPORT, "device": ""}}, {"measurement": 0}),
    "only a ratio": ({"report": 3.8}, {"measurement": 0}),
    "a hundred times": ({"statement": {"a": True, "b": True, "c": True, "d": True}}, {"statement": 1}),
    "one run for each": ({"statement": {"a": False, "b": True, "c": None, "d": False}}, {"statement": 0.5}),
    "left blank": ({"report": None, "statement": dict.fromkeys("abcd")}, {"measurement": 0, "statement": 0}),
}

UNUSUAL = {
    "the name as torch says it": {"report": {**REPORT, "device": "NVIDIA H200"}},
    "a card that the course does not know": {
        "report": {"device": "GeForce GTX 1080", "tiled_ms": 1.4, "cublas_ms": 0.31, "tf32": False}
    },
    "in small letters": {"report": {**REPORT, "device": "h200"}},
    "another card": {
        "report": {"device": "NVIDIA GeForce RTX 3090", "tiled_ms": 1.05, "cublas_ms": 0.14, "tf32": False}
    },
    "numbers of NumPy": {
        "report": {**REPORT, "tiled_ms": np.float64(0.288), "cublas_ms": np.float32(0.0756), "tf32": np.bool_(False)}
    },
    "more than was asked": {"report": {**REPORT, "driver": "580", "repeats": 7}},
}
