// Asynchronous copies: tiles travel from memory to shared memory without passing through registers.
// Adds:   cp.async (Ampere and later) into a ring of STAGES buffers, several tiles in flight.
// Bound:  fragments are read and used in the same breath; the arithmetic waits for shared memory at every step.
// Limits: any M, N, K (edges are filled with zeros; a row length that is no multiple of 4 is copied word by word).
// C (M×N) = A (M×K) · B (K×N)
#include <cuda_pipeline_primitives.h>

#ifndef STAGES
#define STAGES 3
#endif
constexpr int TILE_M = 128, TILE_N = 128, TILE_K = 8;
constexpr int THREADS = 256;  // 16 × 16 of them, 8×8 outputs each
constexpr int PITCH = TILE_M + 4;

extern "C" __global__ void __launch_bounds__(THREADS)
matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ __align__(16) float tileA[STAGES][TILE_K][PITCH];  // transposed: [stage][k][row]
    __shared__ __align__(16) float tileB[STAGES][TILE_K][TILE_N];
    const int row0 = blockIdx.y * TILE_M, column0 = blockIdx.x * TILE_N;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const bool aligned = N % 4 == 0 && (size_t)B % 16 == 0;

    auto copy_tile = [&](int start, int stage) {
        // The third number of a copy is its bytes, the fourth how many of them are zeros instead.
        for (int i = threadIdx.x; i < TILE_M * TILE_K; i += THREADS) {
            const int row = row0 + i / TILE_K, k = start + i % TILE_K;
            const bool inside = row < M && k < K;
            __pipeline_memcpy_async(&tileA[stage][i % TILE_K][i / TILE_K], inside ? A + (size_t)row * K + k : A, 4, inside ? 0 : 4);
        }
        if (aligned) {
            const int i = threadIdx.x * 4, k = start + i / TILE_N, column = column0 + i % TILE_N;
            const bool inside = k < K && column < N;
            __pipeline_memcpy_async(&tileB[stage][i / TILE_N][i % TILE_N], inside ? B + (size_t)k * N + column : B, 16, inside ? 0 : 16);
        } else {
            for (int i = threadIdx.x; i < TILE_K * TILE_N; i += THREADS) {
                const int k = start + i / TILE_N, column = column0 + i % TILE_N;
                const bool inside = k < K && column < N;
                __pipeline_memcpy_async(&tileB[stage][i / TILE_N][i % TILE_N], inside ? B + (size_t)k * N + column : B, 4, inside ? 0 : 4);
            }
        }
    };

    const int tiles = (K + TILE_K - 1) / TILE_K;
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        if (stage < tiles) copy_tile(stage * TILE_K, stage);
        __pipeline_commit();  // a group a tile, empty ones too, so that the count below is always right
    }
    float sum[8][8] = {};
    for (int tile = 0; tile < tiles; ++tile) {
        __pipeline_wait_prior(STAGES - 2);  // my copies of this tile have arrived …
        __syncthreads();                    // … and everyone's; and nobody reads the stage that is filled next
        if (tile + STAGES - 1 < tiles) copy_tile((tile + STAGES - 1) * TILE_K, (tile + STAGES - 1) % STAGES);
        __pipeline_commit();
        const int stage = tile % STAGES;
#pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            float a[8], b[8];
            *(float4*)&a[0] = *(float4*)&tileA[stage][k][ty * 4];
            *(float4*)&a[4] = *(float4*)&tileA[stage][k][ty * 4 + 64];
            *(float4*)&b[0] = *(float4*)&tileB[stage][k][tx * 4];
            *(float4*)&b[4] = *(float4*)&tileB[stage][k][tx * 4 + 64];
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sum[i][j] += a[i] * b[j];
        }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = row0 + ty * 4 + i % 4 + i / 4 * 64;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int column = column0 + tx * 4 + j % 4 + j / 4 * 64;
            if (row < M && column < N) C[(size_t)row * N + column] = sum[i][j];
        }
    }
}
