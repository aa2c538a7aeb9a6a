"""What a build costs in each way, and that a failed ``load_inline`` build really builds again.

python benchmarks/record_builds.py [--json] [--record FILE]
"""

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import torch

from tilelab.cudacpp.errors import BuildError
from tilelab.cudacpp.inline import load_inline
from tilelab.cudacpp.kernel import Kernel
from tilelab.measure.records import conclude, target, where_gpu

TWICE = "__global__ void twice(float* x, int n) { int i = blockIdx.x * 256 + threadIdx.x; if (i < n) x[i] *= 2; }"
WRAPPER = (
    TWICE
    + """
torch::Tensor doubled(torch::Tensor x) {
    auto y = x.clone();
    int n = y.numel();
    twice<<<(n + 255) / 256, 256>>>(y.data_ptr<float>(), n);
    return y;
}
"""
)
DECLARED = "torch::Tensor doubled(torch::Tensor x);"


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long a piece of work took, and what it returned or raised."""
    start = time.perf_counter()
    try:
        outcome = work()
    except BuildError as error:
        outcome = error
    return time.perf_counter() - start, outcome


def kernel(backend: str, unique: str) -> Callable[[], torch.Tensor]:
    """Return a build and a run of the kernel; ``unique`` makes its source one that no cache has seen."""

    def build_and_run() -> torch.Tensor:
        x = torch.arange(1000.0, device="cuda")
        source = f"// {unique}\n{TWICE}"
        Kernel(source, "twice", grid=lambda p: -(-p.n // 256), block=256, backend=backend)(x, 1000)
        return x

    return build_and_run


@click.command()
@click.option("--json", "as_json", is_flag=True)
@click.option("--record", type=click.Path(path_type=Path))
def main(as_json: bool, record: Path | None) -> None:
    """Build one small kernel in every way, from an empty cache and again."""
    due = 2 * torch.arange(1000.0, device="cuda")
    kernel("nvrtc", "warm-up: the compiler's library is loaded once")()
    unique = secrets.token_hex(8)
    rows, wrong = [], 0

    def note(way: str, work: Callable[[], Any]) -> None:
        nonlocal wrong
        took, result = seconds(work)
        wrong += not (isinstance(result, torch.Tensor) and torch.equal(result, due))
        rows.append({"way": way, "seconds": took})

    for backend in ["nvrtc", "nvcc"]:
        note(f"{backend}, first build", kernel(backend, unique))
        note(f"{backend}, again", kernel(backend, unique))
    source = f"// {unique}\n{WRAPPER}"
    broken = source.replace("return y;", "return z;")
    took, error = seconds(lambda: load_inline(DECLARED, broken, ["doubled"]))
    rows.append({"way": "load_inline, a source that fails", "seconds": took})
    line = broken.splitlines().index("    return z;") + 1
    shown = isinstance(error, BuildError) and f"{line}" in str(error).splitlines()[0] and '"z"' in str(error)
    took, again = seconds(lambda: load_inline(DECLARED, broken, ["doubled"]))
    rows.append({"way": "load_inline, the same once more", "seconds": took})
    x = torch.arange(1000.0, device="cuda")
    note("load_inline, the mended source", lambda: load_inline(DECLARED, source, ["doubled"]).doubled(x))
    note("load_inline, again", lambda: load_inline(DECLARED, source, ["doubled"]).doubled(x))

    targets = [
        target("builds that ran wrongly", wrong, 0, "<="),
        target("failed builds that named the line at fault", int(shown) + isinstance(again, BuildError), 2, ">="),
    ]
    conclude(
        rows,
        targets,
        where_gpu("the numbers 0 to 999") | {"first line of the error": str(error).splitlines()[0]},
        as_json,
        record,
    )


if __name__ == "__main__":
    main()
