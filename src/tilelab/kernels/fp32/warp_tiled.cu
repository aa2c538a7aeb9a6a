// Warp-tiled: block, warp, thread, each with its own tile; fragments are read one step ahead of the arithmetic.
// Adds:   a third level between block and thread, so that a warp's reads of shared memory are few and wide; registers
//         double-buffered across steps and across tiles; blocks ordered so that those that run together share panels.
// Bound:  the multiply-add pipe: per step and thread 128 multiply-adds for 6 loads.
// Limits: any M, N, K where VECTOR is 1; N a multiple of 4 and B and C aligned to 16 bytes where it is 4. Rows and columns past the edge are read from the last one and never stored; K past the edge
//         is filled with zeros.
// C (M×N) = A (M×K) · B (K×N)
#include <cuda_pipeline_primitives.h>

// Tile sizes: of a block (BM×BN×BK), of a warp (WM×WN), of a thread (TM×TN). The last are split into runs of 4.
#ifndef BM
#define BM 128
#define BN 256
#define BK 16
#define WM 64
#define WN 64
#define TM 8
#define TN 16
#define STAGES 3
#define BURSTS 4         // in how many bursts a tile's copies are issued, among the arithmetic
#define BLOCKS_PER_SM 1  // for how many the compiler leaves registers
#define VECTOR 4         // columns of B that a copy moves: 4 where rows of B and C start at 16 bytes, else 1
#endif
constexpr int WARPS_M = BM / WM, WARPS_N = BN / WN, THREADS = 32 * WARPS_M * WARPS_N;
constexpr int LANES_M = WM / TM, LANES_N = WN / TN;
static_assert(LANES_M * LANES_N == 32 && BM % WM == 0 && BN % WN == 0 && TM % 4 == 0 && TN % 4 == 0, "tiles must fit");
constexpr int PITCH = BM + 4;  // of a row of A's transposed tile: stores of 8 k × 4 rows meet 32 banks
constexpr int STAGE = BK * (PITCH + BN);  // floats
constexpr int GROUP = 8;  // rows of blocks that are walked together

// Where blockIdx.x stands in C: columns of GROUP blocks, one after another, so that panels are met again in L2.
__device__ inline void place(int blocks_m, int blocks_n, int& block_m, int& block_n) {
    const int group = blockIdx.x / (GROUP * blocks_n), first = group * GROUP;
    const int height = min(GROUP, blocks_m - first), inside = blockIdx.x % (GROUP * blocks_n);
    block_m = first + inside % height;
    block_n = inside / height;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    extern __shared__ __align__(16) float shared[];
    int block_m, block_n;
    place((M + BM - 1) / BM, (N + BN - 1) / BN, block_m, block_n);
    const int row0 = block_m * BM, column0 = block_n * BN;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;

    // ---- copies: a thread always moves the same rows of A and columns of B, from one tile to the next
    constexpr int COPIES_A = BM * BK / THREADS, COPIES_B = BK * BN / VECTOR / THREADS, COPIES = COPIES_A + COPIES_B;
    constexpr int ROWS_A = THREADS / 8, EACH_A = BM / ROWS_A;  // 8 lanes along k: one sector of 32 bytes
    constexpr int ACROSS_B = BN / VECTOR, ROWS_B = THREADS / ACROSS_B;
    static_assert(COPIES_A * THREADS == BM * BK && COPIES_B * VECTOR * THREADS == BK * BN, "copies must be even");
    static_assert(BK % 8 == 0 && BM % ROWS_A == 0 && THREADS % ACROSS_B == 0, "copies must be even");
    const int a_k = thread % 8, a_row = thread / 8;
    const int b_k = thread / ACROSS_B, b_column = thread % ACROSS_B * VECTOR;
    unsigned a_offset[EACH_A];  // bytes from the block's first row: 32 bits each, for registers are dear
#pragma unroll
    for (int i = 0; i < EACH_A; ++i)
        a_offset[i] = 4u * ((unsigned)(min(row0 + a_row + i * ROWS_A, M - 1) - row0) * K + a_k);
    const char* a_from = (const char*)(A + (size_t)row0 * K);
    const float* b_from = B + min(column0 + b_column, N - VECTOR) + (size_t)b_k * N;
    float* const a_to = shared + a_k * PITCH + a_row;
    float* const b_to = shared + BK * PITCH + b_k * BN + b_column;

    const int tiles = (K + BK - 1) / BK, first = K - (tiles - 1) * BK;
    // Copy number c of a thread, of those that fill a stage; k from `length` on is filled with zeros.
    auto copy = [&](int c, int stage, int length) {
        const bool of_a = c < COPIES_A;
        const int row = c % EACH_A, k = of_a ? c / EACH_A * 8 : (c - COPIES_A) * ROWS_B;
        const bool inside = (of_a ? a_k : b_k) + k < length;
        if (of_a)
            __pipeline_memcpy_async(a_to + stage * STAGE + k * PITCH + row * ROWS_A,
                                    inside ? a_from + a_offset[row] + k * 4 : (const char*)A, 4, inside ? 0 : 4);
        else
            __pipeline_memcpy_async(b_to + stage * STAGE + k * BN, inside ? b_from + (size_t)k * N : B, 4 * VECTOR,
                                    inside ? 0 : 4 * VECTOR);
    };
    // The same without a look at the edge. The first tile is the one that K may cut short; all others are full.
    auto copy_full = [&](int c, int stage) {
        const bool of_a = c < COPIES_A;
        const int row = c % EACH_A, k = of_a ? c / EACH_A * 8 : (c - COPIES_A) * ROWS_B;
        if (of_a)
            __pipeline_memcpy_async(a_to + stage * STAGE + k * PITCH + row * ROWS_A, a_from + a_offset[row] + k * 4, 4);
        else
            __pipeline_memcpy_async(b_to + stage * STAGE + k * BN, b_from + (size_t)k * N, 4 * VECTOR);
    };
    auto advance = [&](int length) {
        a_from += 4 * length;
        b_from += (size_t)length * N;
    };

    // ---- fragments: runs of 4 that lie LANES·4 apart, so that the lanes of a warp read consecutive bytes
    const int warp_m = warp / WARPS_N * WM, warp_n = warp % WARPS_N * WN;
    const int lane_m = lane / LANES_N * 4, lane_n = lane % LANES_N * 4;
    float a[2][TM], b[2][TN], sum[TM][TN] = {};
    auto read_fragments = [&](int into, int stage, int k) {
        const float* a_at = shared + stage * STAGE + k * PITCH + warp_m + lane_m;
        const float* b_at = shared + stage * STAGE + BK * PITCH + k * BN + warp_n + lane_n;
#pragma unroll
        for (int i = 0; i < TM; i += 4) *(float4*)&a[into][i] = *(const float4*)(a_at + i * LANES_M);
#pragma unroll
        for (int j = 0; j < TN; j += 4) *(float4*)&b[into][j] = *(const float4*)(b_at + j * LANES_N);
    };

#pragma unroll
    for (int c = 0; c < COPIES; ++c) copy(c, 0, first);
    __pipeline_commit();
    if (tiles > 1) advance(first);
#pragma unroll
    for (int stage = 1; stage < STAGES - 1; ++stage) {
        if (stage < tiles) {
#pragma unroll
            for (int c = 0; c < COPIES; ++c) copy_full(c, stage);
            if (stage + 1 < tiles) advance(BK);
        }
        __pipeline_commit();  // a group a tile, empty ones too, so that the waits count right
    }
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();
    read_fragments(0, 0, 0);
    int stage = 0, filling = STAGES - 1;
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        const bool fill = tile + STAGES - 1 < tiles;
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == BK - 1) {  // step over to the next tile: it has arrived, and this one's last fragments are read
                __pipeline_commit();
                __pipeline_wait_prior(STAGES - 2);
                __syncthreads();
                if (tile + 1 < tiles) stage = stage == STAGES - 1 ? 0 : stage + 1;
                filling = filling == STAGES - 1 ? 0 : filling + 1;
                if (tile + STAGES < tiles) advance(BK);
            }
            read_fragments((k + 1) % 2, stage, (k + 1) % BK);
            if (k % (BK / BURSTS) == 0 && fill) {
                const int burst = k / (BK / BURSTS);
#pragma unroll
                for (int c = burst * COPIES / BURSTS; c < (burst + 1) * COPIES / BURSTS; ++c) copy_full(c, filling);
            }
            // 4×4 outputs at a time, along one row and back along the next: each multiply-add shares an operand with the
            // one before, which the register file then need not read again.
#pragma unroll
            for (int square = 0; square < TM / 4 * TN / 4; ++square)
#pragma unroll
                for (int step = 0; step < 16; ++step) {
                    const int i = square / (TN / 4) * 4 + step / 4;
                    const int j = square % (TN / 4) * 4 + (step / 4 % 2 ? 3 - step % 4 : step % 4);
                    sum[i][j] += a[k % 2][i] * b[k % 2][j];
                }
        }
    }

#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = row0 + warp_m + lane_m + i % 4 + i / 4 * 4 * LANES_M;
        if (row >= M) continue;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int column = column0 + warp_n + lane_n + j * LANES_N;
            float* to = C + (size_t)row * N + column;
            if (VECTOR == 4) {
                if (column < N) *(float4*)to = *(const float4*)&sum[i][j];
            } else {
#pragma unroll
                for (int v = 0; v < 4; ++v)
                    if (column + v < N) to[v] = sum[i][j + v];
            }
        }
    }
}
