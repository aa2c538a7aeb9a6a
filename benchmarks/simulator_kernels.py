"""Kernels that run on the simulator and, this very file, on a GPU by numba-cuda: ``TILELAB_GROUND=gpu`` chooses.

``simulator_twins.cu`` holds the same kernels in CUDA C++, name for name.
"""

import os

if os.environ.get("TILELAB_GROUND") == "gpu":
    from numba import cuda, float32, float64, int32
else:
    from tilelab.simt import cuda, float32, float64, int32

WORDS = 2048
TILE = 16


# ---- one access by a pattern of indices
@cuda.jit
def shared_load_4(out, index):
    s = cuda.shared.array(WORDS, float32)
    t = cuda.threadIdx.x
    for i in range(t, WORDS, cuda.blockDim.x):
        s[i] = i
    cuda.syncthreads()
    out[t] = s[index[t]]


@cuda.jit
def shared_load_8(out, index):
    s = cuda.shared.array(WORDS, float64)
    t = cuda.threadIdx.x
    for i in range(t, WORDS, cuda.blockDim.x):
        s[i] = i
    cuda.syncthreads()
    out[t] = s[index[t]]


@cuda.jit
def shared_load_16(out, index):
    s = cuda.shared.array(WORDS, cuda.float32x4)
    t = cuda.threadIdx.x
    for i in range(t, WORDS, cuda.blockDim.x):
        s[i] = cuda.float32x4(i, 1, 2, 3)
    cuda.syncthreads()
    v = s[index[t]]
    out[t] = v.x + v.y + v.z + v.w


@cuda.jit
def shared_store_4(out, index):
    s = cuda.shared.array(WORDS, float32)
    t = cuda.threadIdx.x
    for i in range(t, WORDS, cuda.blockDim.x):
        s[i] = i
    cuda.syncthreads()
    s[index[t]] = t
    cuda.syncthreads()
    out[t] = s[t]


@cuda.jit
def shared_store_8(out, index):
    s = cuda.shared.array(WORDS, float64)
    t = cuda.threadIdx.x
    for i in range(t, WORDS, cuda.blockDim.x):
        s[i] = i
    cuda.syncthreads()
    s[index[t]] = t
    cuda.syncthreads()
    out[t] = s[t]


@cuda.jit
def shared_store_16(out, index):
    s = cuda.shared.array(WORDS, cuda.float32x4)
    t = cuda.threadIdx.x
    for i in range(t, WORDS, cuda.blockDim.x):
        s[i] = cuda.float32x4(i, 1, 2, 3)
    cuda.syncthreads()
    s[index[t]] = cuda.float32x4(t, 4, 5, 6)
    cuda.syncthreads()
    v = s[t]
    out[t] = v.x + v.y + v.z + v.w


@cuda.jit
def global_load_4(out, a, index):
    t = cuda.threadIdx.x
    out[t] = a[index[t]]


@cuda.jit
def global_load_8(out, a, index):
    t = cuda.threadIdx.x
    out[t] = a[index[t]]


@cuda.jit
def global_store_4(out, index):
    t = cuda.threadIdx.x
    out[index[t]] = t


@cuda.jit
def global_store_8(out, index):
    t = cuda.threadIdx.x
    out[index[t]] = t


# ---- whole kernels
@cuda.jit
def transpose_naive(out, a):
    x, y = cuda.grid(2)
    for j in range(0, 32, 8):
        out[x, y + j + cuda.blockIdx.y * 24] = a[y + j + cuda.blockIdx.y * 24, x]


@cuda.jit
def transpose_tile(out, a):
    s = cuda.shared.array((32, 32), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    bx = cuda.blockIdx.x * 32
    by = cuda.blockIdx.y * 32
    for j in range(0, 32, 8):
        s[ty + j, tx] = a[by + ty + j, bx + tx]
    cuda.syncthreads()
    for j in range(0, 32, 8):
        out[bx + ty + j, by + tx] = s[tx, ty + j]


@cuda.jit
def transpose_padded(out, a):
    s = cuda.shared.array((32, 33), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    bx = cuda.blockIdx.x * 32
    by = cuda.blockIdx.y * 32
    for j in range(0, 32, 8):
        s[ty + j, tx] = a[by + ty + j, bx + tx]
    cuda.syncthreads()
    for j in range(0, 32, 8):
        out[bx + ty + j, by + tx] = s[tx, ty + j]


@cuda.jit
def transpose_swizzled(out, a):
    s = cuda.shared.array((32, 32), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    bx = cuda.blockIdx.x * 32
    by = cuda.blockIdx.y * 32
    for j in range(0, 32, 8):
        s[ty + j, tx ^ (ty + j)] = a[by + ty + j, bx + tx]
    cuda.syncthreads()
    for j in range(0, 32, 8):
        out[bx + ty + j, by + tx] = s[tx, (ty + j) ^ tx]


@cuda.jit
def matmul_tiled(C, A, B):
    sA = cuda.shared.array((TILE, TILE), float32)
    sB = cuda.shared.array((TILE, TILE), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    x, y = cuda.grid(2)
    acc = float32(0)
    for t in range(A.shape[1] // TILE):
        sA[ty, tx] = A[y, t * TILE + tx]
        sB[ty, tx] = B[t * TILE + ty, x]
        cuda.syncthreads()
        for k in range(TILE):
            acc += sA[ty, k] * sB[k, tx]
        cuda.syncthreads()
    C[y, x] = acc


@cuda.jit
def matmul_swapped(C, A, B):
    sA = cuda.shared.array((TILE, TILE), float32)
    sB = cuda.shared.array((TILE, TILE), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    x, y = cuda.grid(2)
    acc = float32(0)
    for t in range(A.shape[1] // TILE):
        sA[ty, tx] = A[y, t * TILE + tx]
        sB[ty, tx] = B[t * TILE + ty, x]
        cuda.syncthreads()
        for k in range(TILE):
            acc += sA[tx, k] * sB[k, tx]
        cuda.syncthreads()
    C[y, x] = acc


# ---- kernels that race, and their mended forms
@cuda.jit
def reverse_racy(out):
    s = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    s[t] = t
    out[t] = s[255 - t]


@cuda.jit
def reverse_right(out):
    s = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    out[t] = s[255 - t]


@cuda.jit
def loop_without_second_barrier(out):
    s = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    v = 0
    for k in range(4):
        s[t] = t + k
        cuda.syncthreads()
        v += s[255 - t]
    out[t] = v


@cuda.jit
def loop_right(out):
    s = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    v = 0
    for k in range(4):
        s[t] = t + k
        cuda.syncthreads()
        v += s[255 - t]
        cuda.syncthreads()
    out[t] = v


@cuda.jit
def reduce_racy(out):
    s = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    h = 128
    while h > 0:
        if t < h:
            s[t] += s[t + h]
        h //= 2
    if t == 0:
        out[0] = s[0]


@cuda.jit
def reduce_right(out):
    s = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    h = 128
    while h > 0:
        if t < h:
            s[t] += s[t + h]
        cuda.syncthreads()
        h //= 2
    if t == 0:
        out[0] = s[0]


@cuda.jit
def count_racy(out):
    s = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    if t < 8:
        s[t] = 0
    cuda.syncthreads()
    s[t % 8] += 1
    cuda.syncthreads()
    if t < 8:
        out[t] = s[t]


@cuda.jit
def count_right(out):
    s = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    if t < 8:
        s[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(s, t % 8, 1)
    cuda.syncthreads()
    if t < 8:
        out[t] = s[t]


@cuda.jit
def warp_exchange_racy(out):
    s = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    s[t] = t
    out[t] = s[t ^ 1]


@cuda.jit
def warp_exchange_right(out):
    s = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncwarp()
    out[t] = s[t ^ 1]


# ---- kernels for equal results only
@cuda.jit(device=True)
def collatz_steps(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if steps >= 200:
            break
    return steps


@cuda.jit
def collatz(out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i] = collatz_steps(i + 1)


@cuda.jit
def warp_sums(out, a):
    i = cuda.grid(1)
    v = a[i]
    for step in (16, 8, 4, 2, 1):
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, step)
    if cuda.threadIdx.x % 32 == 0:
        cuda.atomic.add(out, 0, v)


@cuda.jit
def mean_in_double(out, a):
    i = cuda.grid(1)
    total = 0.0
    for k in range(a.shape[1]):
        total += a[i, k]
    out[i] = total / a.shape[1]


@cuda.jit
def integer_rules(out, a, b):
    i = cuda.grid(1)
    out[0, i] = a[i] // b[i]
    out[1, i] = a[i] % b[i]
    out[2, i] = a[i] >> 2
    out[3, i] = a[i] * b[i] * 1000003
    out[4, i] = -a[i] // 3
    out[5, i] = cuda.popc(a[i])
    out[6, i] = min(a[i], b[i]) + max(a[i], 3) + abs(a[i])


@cuda.jit
def dynamic_split(out, a):
    buffer = cuda.shared.array(0, float32)
    n = cuda.blockDim.x
    left = buffer[:n]
    right = buffer[n:]
    t = cuda.threadIdx.x
    left[t] = a[t]
    right[t] = 2 * a[t]
    cuda.syncthreads()
    out[t] = left[n - 1 - t] + right[n - 1 - t]
