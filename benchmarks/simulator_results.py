"""Run the kernels of ``simulator_kernels.py`` on the ground that ``TILELAB_GROUND`` names and save what they give.

usage: simulator_results.py FILE.npz
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import simulator_kernels as kernels


def cases() -> dict[str, tuple[object, tuple, list]]:
    """Name -> kernel, launch configuration, arguments; whole numbers, so that order and fusing change nothing."""
    rng = np.random.default_rng(0)

    def whole(*shape: int) -> np.ndarray:
        return rng.integers(-8, 9, shape).astype(np.float32)

    a, b, c = whole(64, 64), whole(64, 64), np.zeros((64, 64), np.float32)
    numbers = rng.integers(-1000, 1000, (2, 256))
    numbers[1][numbers[1] == 0] = 7
    index = rng.permutation(64).astype(np.int32)
    tiles, rows = (2, 2), (32, 8)
    return {
        "shared_load_4": (kernels.shared_load_4, (1, 64), [np.zeros(64, np.float32), index]),
        "shared_load_8": (kernels.shared_load_8, (1, 64), [np.zeros(64, np.float32), index]),
        "shared_store_4": (kernels.shared_store_4, (1, 64), [np.zeros(64, np.float32), index]),
        "global_load_4": (kernels.global_load_4, (1, 64), [np.zeros(64, np.float32), whole(64), index]),
        "global_store_8": (kernels.global_store_8, (1, 64), [np.zeros(64), index]),
        "transpose_naive": (kernels.transpose_naive, (tiles, rows), [c.copy(), a]),
        "transpose_tile": (kernels.transpose_tile, (tiles, rows), [c.copy(), a]),
        "transpose_padded": (kernels.transpose_padded, (tiles, rows), [c.copy(), a]),
        "transpose_swizzled": (kernels.transpose_swizzled, (tiles, rows), [c.copy(), a]),
        "matmul_tiled": (kernels.matmul_tiled, ((4, 4), (16, 16)), [c.copy(), a, b]),
        "matmul_swapped": (kernels.matmul_swapped, ((4, 4), (16, 16)), [c.copy(), a, b]),
        "reverse_right": (kernels.reverse_right, (1, 256), [np.zeros(256, np.int32)]),
        "loop_right": (kernels.loop_right, (1, 256), [np.zeros(256, np.int32)]),
        "reduce_right": (kernels.reduce_right, (1, 256), [np.zeros(1, np.int32)]),
        "count_right": (kernels.count_right, (1, 256), [np.zeros(8, np.int32)]),
        "warp_exchange_right": (kernels.warp_exchange_right, (1, 256), [np.zeros(256, np.int32)]),
        "collatz": (kernels.collatz, (3, 128), [np.zeros(300, np.int64)]),
        "warp_sums": (kernels.warp_sums, (4, 64), [np.zeros(1, np.int64), numbers[0]]),
        "mean_in_double": (kernels.mean_in_double, (1, 32), [np.zeros(32), rng.random((32, 50), np.float32)]),
        "integer_rules": (kernels.integer_rules, (2, 128), [np.zeros((7, 256), np.int64), numbers[0], numbers[1]]),
        "dynamic_split": (kernels.dynamic_split, (1, 64, 0, 512), [np.zeros(64, np.float32), whole(64)]),
    }


def main(path: str) -> None:
    """Run all and save the first argument of each."""
    found, failed = {}, []
    for name, (kernel, configuration, arguments) in cases().items():
        try:
            kernel[configuration](*arguments)  # type: ignore[index]
            found[name] = arguments[0]
        except Exception as error:
            failed.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
    np.savez(path, **found, failed=np.array(failed))
    print(f"{len(found)} kernels ran, {len(failed)} failed", *failed, sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1])
