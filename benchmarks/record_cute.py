"""The CuTe walkthrough on a GPU: its offsets, its copy, and its GEMM.

python benchmarks/record_cute.py [--json] [--record FILE]
"""

import time
from pathlib import Path

import click
import torch

from tilelab.cudacpp import device, nvcc
from tilelab.kernels import cute_walkthrough as walkthrough
from tilelab.measure import gpu
from tilelab.measure.records import conclude, target, where_gpu
from tilelab.measure.statistics import estimate


@click.command()
@click.option("--json", "as_json", is_flag=True)
@click.option("--record", type=click.Path(path_type=Path))
def main(as_json: bool, record: Path | None) -> None:
    """Build, run, check and time."""
    start = time.perf_counter()
    nvcc.compile_cubin(walkthrough.source(), device.chip_of().name)
    build = time.perf_counter() - start

    M, N, K = 256, 384, 96
    offsets = torch.full((256, 8, 2, K // 32), -1, dtype=torch.int32, device="cuda")
    walkthrough.partition_offsets()(offsets, M, K, 1)
    # Thread (r, c) of 16×16 row-major copies rows r, r+16, … and columns c, c+16 of each 128×32 tile.
    t, i, j, k = torch.meshgrid(
        torch.arange(256), torch.arange(8), torch.arange(2), torch.arange(K // 32), indexing="ij"
    )
    due = (128 + t // 16 + 16 * i) * K + t % 16 + 16 * j + 32 * k
    wrong_offsets = int((offsets.cpu() != due).sum())

    a = torch.randn(M, K, device="cuda").half()
    out = torch.full_like(a, float("nan"))
    walkthrough.copy_through_shared()(a, out, M, K)
    wrong_copies = int((out != a).sum())

    M, N, K = 2048, 2048, 2048
    a, b = torch.randn(M, K, device="cuda").half(), torch.randn(N, K, device="cuda").half()
    c = torch.full((M, N), float("nan"), device="cuda")
    go = walkthrough.gemm_nt().prepared(a, b, c, M, N, K)
    go()
    exact = a.double() @ b.double().T
    allowed = K * 2.0**-24 * (a.double().abs() @ b.double().abs().T)
    wrong = int((~((c.double() - exact).abs() <= allowed)).sum())
    watch = gpu.Stopwatch()
    took = estimate([watch([go]).device for _ in range(9)])
    rows = [
        {"what": "build by nvcc, s", "value": build},
        {"what": "offsets that differ", "value": wrong_offsets},
        {"what": "elements copied wrongly", "value": wrong_copies},
        {"what": f"elements of the {M}³ GEMM outside the bound", "value": wrong},
        {"what": "GEMM, ms", "value": took.value},
        {"what": "GEMM, TFLOP/s", "value": 2.0 * M * N * K / took.value / 1e9},
    ]
    targets = [target("wrong offsets, copies and products", wrong_offsets + wrong_copies + wrong, 0, "<=")]
    where = where_gpu("normal, half; accumulated in fp32")
    conclude(rows, targets, where, as_json, record)


if __name__ == "__main__":
    main()
