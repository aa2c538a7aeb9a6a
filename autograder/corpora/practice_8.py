"""Practice 8: a plan for a product of one's own. The text is for a person; these are rooflines."""


def roofline(shape=(16, 14336, 4096), dtype="bf16", device="H200", size=2, bound="memory", **changes):
    """A right roofline for a shape, with some numbers changed."""
    m, n, k = shape
    flops, moved = 2 * m * n * k, size * (m * k + k * n + m * n)
    right = {"flops": flops, "bytes": moved, "intensity": flops / moved, "bound": bound}
    return {"roofline": {"shape": shape, "dtype": dtype, "device": device, **right, **changes}}


RIGHT = roofline()

WRONG = {
    "multiply-adds instead of flops": (
        roofline(flops=16 * 14336 * 4096, intensity=7.96),
        {"roofline": 2},
    ),
    "requests taken for traffic": (
        roofline(bytes=2 * 2 * 16 * 14336 * 4096, intensity=0.5),
        {"roofline": 2},
    ),
    "elements instead of bytes": (roofline(bytes=59080704, intensity=31.8), {"roofline": 2}),
    "C forgotten": (
        roofline(shape=(512, 4096, 512), bytes=2 * (512 * 512 + 512 * 4096), intensity=455.1),
        {"roofline": 1},
    ),
    "the wrong side of the ridge": (roofline(bound="compute"), {"roofline": 3}),
    "bytes of fp32 for bf16": (roofline(size=4), {"roofline": 2}),
    "flops in teraflops": (roofline(flops=1.879e-3), {"roofline": 3}),
    "bytes in gigabytes": (roofline(bytes=0.118), {"roofline": 3}),
    "flops per element": (roofline(intensity=31.8), {"roofline": 3}),
    "a shape as text": ({"roofline": {**roofline()["roofline"], "shape": "16x14336x4096"}}, {"roofline": 0}),
    "a bound that is neither": (roofline(bound="bandwidth"), {"roofline": 3}),
    "a card of one's own making": (roofline(device="H900"), {"roofline": 0}),
    "a shape of two numbers": ({"roofline": {"shape": [16, 4096], "dtype": "bf16", "device": "H200"}}, {"roofline": 0}),
    "fp8 on an A100": (roofline(dtype="fp8", device="A100", size=1), {"roofline": 0}),
    "left blank": (
        {
            "roofline": {"shape": [None] * 3}
            | dict.fromkeys(("dtype", "device", "flops", "bytes", "intensity", "bound"))
        },
        {"roofline": 0},
    ),
}

UNUSUAL = {
    "a large square, bound by arithmetic": roofline((4096, 4096, 4096), "fp32", "A100", 4, "compute"),
    "an intensity rounded": roofline(intensity=15.9),
    "the card as torch says it": roofline(device="NVIDIA H200"),
    "a type as torch says it": roofline((64, 4096, 4096), "torch.bfloat16"),
    "float32 in full": roofline((1, 4096, 4096), "float32", size=4),
    "memory-bound": roofline(bound="Memory-bound"),
    "the shape by name": {"roofline": {**roofline()["roofline"], "shape": {"M": 16, "N": 14336, "K": 4096}}},
    "numbers rounded to three digits": roofline(flops=1.88e9, bytes=1.18e8),
    "fp8 on an H100": roofline((64, 8192, 8192), "FP8", "H100", 1),
}
