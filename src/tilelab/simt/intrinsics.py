"""The names that mean something only inside a kernel. Each is an object, so that any import of it is recognised."""

from typing import Any

from tilelab.simt.errors import SimtError

#: Host functions of math and NumPy -> what they are called here.
ATOMICS = {
    "add": 1, "sub": 1, "max": 1, "min": 1, "nanmax": 1, "nanmin": 1, "and_": 1, "or_": 1, "xor": 1,
    "inc": 1, "dec": 1, "exch": 1, "cas": 2, "compare_and_swap": 2,
}  # fmt: skip
SHUFFLES = ("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync")
VOTES = ("all_sync", "any_sync", "eq_sync", "ballot_sync")
MATCHES = ("match_any_sync", "match_all_sync")
#: Where a thread and its block stand; each has x, y and z.
DIMS = ("threadIdx", "blockIdx", "blockDim", "gridDim")
#: Name of a function of cuda.fp16 -> how many operands it takes.
HALF = {
    "hadd": 2, "hsub": 2, "hmul": 2, "hdiv": 2, "hfma": 3, "hneg": 1, "habs": 1, "hmax": 2, "hmin": 2,
    "heq": 2, "hne": 2, "hlt": 2, "hle": 2, "hgt": 2, "hge": 2,
    "hsin": 1, "hcos": 1, "hlog": 1, "hlog2": 1, "hlog10": 1, "hexp": 1, "hexp2": 1, "hexp10": 1, "htanh": 1,
    "hsqrt": 1, "hrsqrt": 1, "hrcp": 1, "hfloor": 1, "hceil": 1, "htrunc": 1, "hrint": 1,
}  # fmt: skip


class Intrinsic:
    """A function or value that exists on a GPU only."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = name.rpartition(".")[2]

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Refuse: there is no thread on the host."""
        raise SimtError(f"cuda.{self.name} has a meaning only inside a kernel (a function under @cuda.jit)")

    def __repr__(self) -> str:
        return f"<cuda.{self.name}>"


class Namespace:
    """``cuda.shared`` and its like: a name with intrinsics in it."""

    def __init__(self, prefix: str, names: list[str]) -> None:
        for name in names:
            setattr(self, name, Intrinsic(f"{prefix}.{name}"))

    def __getattr__(self, name: str) -> Intrinsic:
        raise AttributeError(f"there is no {name!r} here; there is {', '.join(sorted(vars(self)))}")
