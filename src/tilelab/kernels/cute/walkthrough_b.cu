// A CuTe walkthrough done right: cut a matrix into tiles, share a tile out among threads, pad it in shared memory,
// take one K tile at a time; and a plain GEMM made of the same parts.
// Needs:  the CuTe headers (wheel nvidia-cutlass) and nvcc; sm_70 or later.
// Limits: M and N multiples of 128, K of 32; row-major contiguous half in, float out.
#include <cute/tensor.hpp>

using namespace cute;

using TileM = Int<128>;
using TileN = Int<128>;
using TileK = Int<32>;
// 16×16 threads, row-major: thread 1 is thread 0's neighbour along K, so that a warp reads neighbouring elements. The
// default of make_layout is column-major and would put it a whole row away.
using Threads = Layout<Shape<_16, _16>, Stride<_16, _1>>;
// The shared tile: a row is 33 elements apart from the next, and 128×32 elements need cosize = 127·33 + 31 + 1 of them.
using Padded = Layout<Shape<TileM, TileK>, Stride<Int<33>, _1>>;

// Offsets from A's first element that a thread copies: offsets[thread][i][j][k], i and j inside the thread's part of
// a tile, k the number of the tile. Runs on the host as well as on the device.
template <class Write> CUTE_HOST_DEVICE void each_offset(int M, int K, int block, int thread, Write write) {
    Tensor cA = make_identity_tensor(make_shape(M, K));
    Tensor tiles = local_tile(cA, make_shape(TileM{}, TileK{}), make_coord(block, _));  // (128, 32, k)
    Tensor mine = local_partition(tiles, Threads{}, thread);                            // (8, 2, k): rank 3
    for (int k = 0; k < size<2>(mine); ++k)
        for (int j = 0; j < size<1>(mine); ++j)
            for (int i = 0; i < size<0>(mine); ++i) {
                auto at = mine(i, j, k);
                write(i, j, k, get<0>(at) * K + get<1>(at));
            }
}

#ifdef __CUDACC__  // the check on the host compiles only what stands above

extern "C" __global__ void partition_offsets(int* offsets, int M, int K, int block) {
    const int thread = threadIdx.x, tiles = K / TileK{};
    each_offset(M, K, block, thread, [=](int i, int j, int k, int offset) {
        offsets[((thread * 8 + i) * 2 + j) * tiles + k] = offset;
    });
}

// Copies a panel of 128 rows through shared memory, one K tile at a time.
extern "C" __global__ void copy_through_shared(const half_t* A, half_t* out, int M, int K) {
    __shared__ half_t buffer[cosize_v<Padded>];
    const auto matrix = make_layout(make_shape(M, K), make_stride(K, _1{}));
    Tensor gA = local_tile(make_tensor(make_gmem_ptr(A), matrix), make_shape(TileM{}, TileK{}), make_coord(blockIdx.x, _));
    Tensor gO = local_tile(make_tensor(make_gmem_ptr(out), matrix), make_shape(TileM{}, TileK{}), make_coord(blockIdx.x, _));
    Tensor sA = make_tensor(make_smem_ptr(buffer), Padded{});
    Tensor tAgA = local_partition(gA, Threads{}, threadIdx.x);  // (8, 2, k)
    Tensor tOgO = local_partition(gO, Threads{}, threadIdx.x);
    Tensor tAsA = local_partition(sA, Threads{}, threadIdx.x);  // (8, 2): copy(tAgA, tAsA) would not fit
    for (int k = 0; k < size<2>(tAgA); ++k) {
        copy(tAgA(_, _, k), tAsA);  // vectorised where layouts allow it; cp.async would have to be asked for
        __syncthreads();
        copy(tAsA, tOgO(_, _, k));
        __syncthreads();
    }
}

// C (M×N, float) = A (M×K, half) · Bᵀ, with B stored N×K, as a linear layer's weights are.
extern "C" __global__ void __launch_bounds__(256)
gemm_nt(const half_t* A, const half_t* B, float* C, int M, int N, int K) {
    __shared__ half_t bufferA[cosize_v<Padded>], bufferB[cosize_v<Padded>];
    Tensor mA = make_tensor(make_gmem_ptr(A), make_layout(make_shape(M, K), make_stride(K, _1{})));
    Tensor mB = make_tensor(make_gmem_ptr(B), make_layout(make_shape(N, K), make_stride(K, _1{})));
    Tensor mC = make_tensor(make_gmem_ptr(C), make_layout(make_shape(M, N), make_stride(N, _1{})));
    Tensor gA = local_tile(mA, make_shape(TileM{}, TileK{}), make_coord(blockIdx.y, _));
    Tensor gB = local_tile(mB, make_shape(TileN{}, TileK{}), make_coord(blockIdx.x, _));
    Tensor gC = local_tile(mC, make_shape(TileM{}, TileN{}), make_coord(blockIdx.y, blockIdx.x));
    Tensor sA = make_tensor(make_smem_ptr(bufferA), Padded{});
    Tensor sB = make_tensor(make_smem_ptr(bufferB), Padded{});

    Tensor tAgA = local_partition(gA, Threads{}, threadIdx.x);
    Tensor tAsA = local_partition(sA, Threads{}, threadIdx.x);
    Tensor tBgB = local_partition(gB, Threads{}, threadIdx.x);
    Tensor tBsB = local_partition(sB, Threads{}, threadIdx.x);
    // For the arithmetic the same 16×16 threads stand over C; A lacks their second mode, B their first.
    Tensor tCsA = local_partition(sA, Threads{}, threadIdx.x, Step<_1, X>{});  // (8, 32)
    Tensor tCsB = local_partition(sB, Threads{}, threadIdx.x, Step<X, _1>{});  // (8, 32)
    Tensor tCgC = local_partition(gC, Threads{}, threadIdx.x, Step<_1, _1>{});  // (8, 8)
    Tensor sum = make_tensor_like(tCgC);
    clear(sum);
    for (int k = 0; k < size<2>(tAgA); ++k) {
        copy(tAgA(_, _, k), tAsA);
        copy(tBgB(_, _, k), tBsB);
        __syncthreads();
        gemm(tCsA, tCsB, sum);
        __syncthreads();
    }
    copy(sum, tCgC);
}

#endif
