"""Matrix products for ``simulator.py``: ``TILELAB_GROUND=numba`` chooses numba-cuda's simulator instead of ours."""

import os

if os.environ.get("TILELAB_GROUND") == "numba":
    from numba import cuda, float32
else:
    from tilelab.simt import cuda, float32

TILE = 16
BM, BN, BK, TM, TN = 64, 64, 8, 4, 4


@cuda.jit
def tiled(A, B, C):
    sA = cuda.shared.array((TILE, TILE), float32)
    sB = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    M, K = A.shape
    N = B.shape[1]
    acc = float32(0.0)
    for t in range((K + TILE - 1) // TILE):
        sA[ty, tx] = A[y, t * TILE + tx] if (y < M and t * TILE + tx < K) else 0
        sB[ty, tx] = B[t * TILE + ty, x] if (x < N and t * TILE + ty < K) else 0
        cuda.syncthreads()
        for k in range(TILE):
            acc += sA[ty, k] * sB[k, tx]
        cuda.syncthreads()
    if y < M and x < N:
        C[y, x] = acc


@cuda.jit
def register_tiled(A, B, C):
    sA = cuda.shared.array((BM, BK), float32)
    sB = cuda.shared.array((BK, BN), float32)
    acc = cuda.local.array((TM, TN), float32)
    a = cuda.local.array(TM, float32)
    b = cuda.local.array(TN, float32)
    tid = cuda.threadIdx.x
    row = tid // (BN // TN)
    col = tid % (BN // TN)
    for i in range(TM):
        for j in range(TN):
            acc[i, j] = 0
    for t in range(A.shape[1] // BK):
        for e in range(BM * BK // 256):
            n = e * 256 + tid
            sA[n // BK, n % BK] = A[cuda.blockIdx.y * BM + n // BK, t * BK + n % BK]
            sB[n // BN, n % BN] = B[t * BK + n // BN, cuda.blockIdx.x * BN + n % BN]
        cuda.syncthreads()
        for k in range(BK):
            for i in range(TM):
                a[i] = sA[row * TM + i, k]
            for j in range(TN):
                b[j] = sB[k, col * TN + j]
            for i in range(TM):
                for j in range(TN):
                    acc[i, j] += a[i] * b[j]
        cuda.syncthreads()
    for i in range(TM):
        for j in range(TN):
            C[cuda.blockIdx.y * BM + row * TM + i, cuda.blockIdx.x * BN + col * TN + j] = acc[i, j]
