// Vector types and dim3.
#pragma once

// ---- vectors: alignment as in CUDA, for a misaligned vector access is an error there too
#define TILELAB_VECTORS(T, name, align2, align4) \
    struct name##1 { T x; }; \
    struct alignas(align2) name##2 { T x, y; }; \
    struct name##3 { T x, y, z; }; \
    struct alignas(align4) name##4 { T x, y, z, w; }; \
    inline name##1 make_##name##1(T x) { return {x}; } \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; } \
    inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
TILELAB_VECTORS(float, float, 8, 16)
TILELAB_VECTORS(double, double, 16, 16)
TILELAB_VECTORS(int, int, 8, 16)
TILELAB_VECTORS(unsigned, uint, 8, 16)
TILELAB_VECTORS(short, short, 4, 8)
TILELAB_VECTORS(unsigned short, ushort, 4, 8)
TILELAB_VECTORS(signed char, char, 2, 4)
TILELAB_VECTORS(unsigned char, uchar, 2, 4)
TILELAB_VECTORS(long, long, 16, 16)
TILELAB_VECTORS(unsigned long, ulong, 16, 16)
TILELAB_VECTORS(long long, longlong, 16, 16)
TILELAB_VECTORS(unsigned long long, ulonglong, 16, 16)

#undef TILELAB_VECTORS

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};
