// Double-buffered: while a block computes on one pair of tiles, the next pair is on its way.
// Adds:   two buffers; the loads of tile t+1 go to registers before the arithmetic of tile t, and to shared memory
//         after it. One barrier a tile instead of two.
// Bound:  the registers that hold what is in flight, and every byte passes through them.
// Limits: any M, N, K (edges are filled with zeros).
// C (M×N) = A (M×K) · B (K×N)
constexpr int TILE_M = 128, TILE_N = 128, TILE_K = 8;
constexpr int THREADS = 256;  // 16 × 16 of them, 8×8 outputs each
constexpr int PITCH = TILE_M + 4;  // rows of A's tile move on by 4 banks: storing a column of it meets no conflict

// Four floats from p on; those from position `left` on are zero. One load where p is a multiple of 16 bytes.
__device__ inline float4 load4(const float* p, int left) {
    if (left >= 4 && (size_t)p % 16 == 0) return *(const float4*)p;
    return make_float4(left > 0 ? p[0] : 0.0f, left > 1 ? p[1] : 0.0f, left > 2 ? p[2] : 0.0f, left > 3 ? p[3] : 0.0f);
}

extern "C" __global__ void __launch_bounds__(THREADS)
matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ __align__(16) float tileA[2][TILE_K][PITCH];  // transposed: [buffer][k][row]
    __shared__ __align__(16) float tileB[2][TILE_K][TILE_N];
    const int row0 = blockIdx.y * TILE_M, column0 = blockIdx.x * TILE_N;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    // What this thread loads of each tile: four elements.
    const int a_row = threadIdx.x / 2, a_k = threadIdx.x % 2 * 4;
    const int b_k = threadIdx.x / 32, b_column = threadIdx.x % 32 * 4;

    float4 a4, b4;  // on the way
    auto fetch = [&](int start) {
        const int a_left = row0 + a_row < M ? K - start - a_k : 0;
        a4 = load4(A + (size_t)(row0 + a_row) * K + start + a_k, a_left);
        const int b_left = start + b_k < K ? N - column0 - b_column : 0;
        b4 = load4(B + (size_t)(start + b_k) * N + column0 + b_column, b_left);
    };
    auto put = [&](int buffer) {
        tileA[buffer][a_k + 0][a_row] = a4.x;
        tileA[buffer][a_k + 1][a_row] = a4.y;
        tileA[buffer][a_k + 2][a_row] = a4.z;
        tileA[buffer][a_k + 3][a_row] = a4.w;
        *(float4*)&tileB[buffer][b_k][b_column] = b4;
    };

    float sum[8][8] = {};
    fetch(0);
    put(0);
    __syncthreads();
    int now = 0;
    for (int start = 0; start < K; start += TILE_K) {
        const bool more = start + TILE_K < K;
        if (more) fetch(start + TILE_K);
#pragma unroll
        for (int k = 0; k < TILE_K; ++k) {
            float a[8], b[8];
            *(float4*)&a[0] = *(float4*)&tileA[now][k][ty * 4];
            *(float4*)&a[4] = *(float4*)&tileA[now][k][ty * 4 + 64];
            *(float4*)&b[0] = *(float4*)&tileB[now][k][tx * 4];
            *(float4*)&b[4] = *(float4*)&tileB[now][k][tx * 4 + 64];
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sum[i][j] += a[i] * b[j];
        }
        now ^= 1;
        if (more) put(now);  // nobody reads that buffer: all have passed the barrier below since they did
        __syncthreads();
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
