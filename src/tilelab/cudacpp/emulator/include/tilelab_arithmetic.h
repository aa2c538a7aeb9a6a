// Arithmetic intrinsics, half and bfloat16.
#pragma once

// ---- integers and fp32
// Of a NaN and a number a GPU takes the number. (a != a is true of a NaN alone.)
template <class A, class B> constexpr auto min(A a, B b) -> decltype(a + b) { return a < b || b != b ? a : b; }
template <class A, class B> constexpr auto max(A a, B b) -> decltype(a + b) { return b < a || b != b ? a : b; }
// Conversions on a GPU saturate, and make 0 of a NaN.
inline int tilelab_to_int(double a) { return a != a ? 0 : a >= 2147483647.0 ? INT_MAX : a <= -2147483648.0 ? INT_MIN : (int)a; }
inline unsigned tilelab_to_uint(double a) { return a != a || a <= 0 ? 0u : a >= 4294967295.0 ? UINT_MAX : (unsigned)a; }
#define TILELAB_ROUNDED(suffix, rounding) \
    inline int __float2int_##suffix(float a) { return tilelab_to_int(rounding(a)); } \
    inline unsigned __float2uint_##suffix(float a) { return tilelab_to_uint(rounding(a)); } \
    inline int __double2int_##suffix(double a) { return tilelab_to_int(rounding(a)); }
TILELAB_ROUNDED(rn, rint)
TILELAB_ROUNDED(rz, trunc)
TILELAB_ROUNDED(ru, ceil)
TILELAB_ROUNDED(rd, floor)
#undef TILELAB_ROUNDED
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __expf(float a) { return expf(a); }
inline float __logf(float a) { return logf(a); }
inline float __sinf(float a) { return sinf(a); }
inline float __cosf(float a) { return cosf(a); }
inline float rsqrtf(float a) { return 1.0f / sqrtf(a); }
inline float __uint2float_rn(unsigned a) { return (float)a; }
inline float __saturatef(float a) { return a > 0 ? (a < 1 ? a : 1) : 0; }
inline int __popc(unsigned a) { return __builtin_popcount(a); }
inline int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
inline int __clz(int a) { return a ? __builtin_clz((unsigned)a) : 32; }
inline int __clzll(long long a) { return a ? __builtin_clzll((unsigned long long)a) : 64; }
inline int __ffs(int a) { return __builtin_ffs(a); }
inline unsigned __brev(unsigned a) {
    unsigned r = 0;
    for (int i = 0; i < 32; ++i) r |= (a >> i & 1) << (31 - i);
    return r;
}
inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline float __int_as_float(int a) { return tilelab_value<float>((unsigned)a); }
inline int __float_as_int(float a) { return tilelab_value<int>(tilelab_bits(a)); }
inline unsigned __float_as_uint(float a) { return tilelab_value<unsigned>(tilelab_bits(a)); }
inline float __uint_as_float(unsigned a) { return tilelab_value<float>(a); }
inline float __int2float_rn(int a) { return (float)a; }
inline long long clock64() { return 1000ll * clock(); }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frsqrt_rn(float a) { return 1.0f / sqrtf(a); }
inline float __powf(float a, float b) { return powf(a, b); }
inline float __exp10f(float a) { return powf(10.0f, a); }
inline float __log2f(float a) { return log2f(a); }
inline float __log10f(float a) { return log10f(a); }
inline float __tanf(float a) { return tanf(a); }
inline double rsqrt(double a) { return 1.0 / sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float __double2float_rn(double a) { return (float)a; }
inline long long __double_as_longlong(double a) { return tilelab_value<long long>(tilelab_bits(a)); }
inline double __longlong_as_double(long long a) { return tilelab_value<double>((unsigned long long)a); }
inline int __ffsll(long long a) { return __builtin_ffsll(a); }
inline int __dp4a(int a, int b, int sum) {
    for (int i = 0; i < 32; i += 8) sum += (int8_t)(a >> i) * (int8_t)(b >> i);
    return sum;
}

// ---- 16-bit floats: stored as bits, computed in fp32 and rounded to nearest even after every operation
inline uint16_t tilelab_to_bf16(float f) {
    uint32_t u = tilelab_value<uint32_t>(tilelab_bits(f));
    if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}
inline float tilelab_from_bf16(uint16_t b) { return tilelab_value<float>((uint32_t)b << 16); }
inline float tilelab_from_half(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 31) return tilelab_value<float>(sign | 0x7f800000u | fraction << 13);
    if (exponent) return tilelab_value<float>(sign | (exponent + 112) << 23 | fraction << 13);
    const float small = ldexpf((float)fraction, -24);
    return sign ? -small : small;
}
inline uint16_t tilelab_to_half(float f) {
    const uint32_t u = tilelab_value<uint32_t>(tilelab_bits(f)), sign = u >> 16 & 0x8000;
    const uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return 0x7fff;
    if (magnitude >= 0x47800000u) return (uint16_t)(sign | 0x7c00);  // 65536 and more; less than that rounds up below
    if (magnitude < 0x38800000u) {  // under 2^-14: a multiple of 2^-24
        const float scaled = ldexpf(fabsf(f), 24);
        return (uint16_t)(sign | (uint32_t)rintf(scaled));
    }
    const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((rounded - 0x38000000u) >> 13));
}

#define TILELAB_FLOAT16(Type, Type2, to_bits, from_bits, name) \
    struct Type { \
        uint16_t bits; \
        Type() = default; \
        Type(float f) : bits(to_bits(f)) {} \
        Type(double f) : bits(to_bits((float)f)) {} \
        Type(int f) : bits(to_bits((float)f)) {} \
        operator float() const { return from_bits(bits); } \
        Type& operator+=(Type b) { return *this = Type((float)*this + (float)b); } \
        Type& operator-=(Type b) { return *this = Type((float)*this - (float)b); } \
        Type& operator*=(Type b) { return *this = Type((float)*this * (float)b); } \
        Type& operator/=(Type b) { return *this = Type((float)*this / (float)b); } \
    }; \
    struct alignas(4) Type2 { Type x, y; }; \
    inline Type operator+(Type a, Type b) { return a += b; } \
    inline Type operator-(Type a, Type b) { return a -= b; } \
    inline Type operator*(Type a, Type b) { return a *= b; } \
    inline Type operator/(Type a, Type b) { return a /= b; } \
    inline Type operator-(Type a) { return Type(-(float)a); } \
    inline Type2 operator+(Type2 a, Type2 b) { return {a.x + b.x, a.y + b.y}; } \
    inline Type2 operator-(Type2 a, Type2 b) { return {a.x - b.x, a.y - b.y}; } \
    inline Type2 operator*(Type2 a, Type2 b) { return {a.x * b.x, a.y * b.y}; } \
    inline Type __hadd(Type a, Type b) { return a + b; } \
    inline Type __hsub(Type a, Type b) { return a - b; } \
    inline Type __hmul(Type a, Type b) { return a * b; } \
    inline Type __hdiv(Type a, Type b) { return a / b; } \
    inline Type __hneg(Type a) { return -a; } \
    inline Type __hfma(Type a, Type b, Type c) { return Type(fmaf((float)a, (float)b, (float)c)); } \
    inline Type2 __hadd2(Type2 a, Type2 b) { return a + b; } \
    inline Type2 __hmul2(Type2 a, Type2 b) { return a * b; } \
    inline Type2 __hfma2(Type2 a, Type2 b, Type2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
    inline Type __hmin(Type a, Type b) { return Type(fminf((float)a, (float)b)); } \
    inline Type __hmax(Type a, Type b) { return Type(fmaxf((float)a, (float)b)); } \
    inline Type __habs(Type a) { return Type(fabsf((float)a)); } \
    inline bool __hlt(Type a, Type b) { return (float)a < (float)b; } \
    inline bool __hgt(Type a, Type b) { return (float)a > (float)b; } \
    inline bool __heq(Type a, Type b) { return (float)a == (float)b; } \
    inline bool __hne(Type a, Type b) { return (float)a != (float)b; } \
    inline bool __hle(Type a, Type b) { return (float)a <= (float)b; } \
    inline bool __hge(Type a, Type b) { return (float)a >= (float)b; } \
    inline Type2 __hsub2(Type2 a, Type2 b) { return a - b; } \
    inline Type hsqrt(Type a) { return Type(sqrtf((float)a)); } \
    inline Type hrsqrt(Type a) { return Type(1.0f / sqrtf((float)a)); } \
    inline Type hrcp(Type a) { return Type(1.0f / (float)a); } \
    inline Type hexp(Type a) { return Type(expf((float)a)); } \
    inline Type hexp2(Type a) { return Type(exp2f((float)a)); } \
    inline Type hlog(Type a) { return Type(logf((float)a)); } \
    inline Type hlog2(Type a) { return Type(log2f((float)a)); } \
    inline Type hsin(Type a) { return Type(sinf((float)a)); } \
    inline Type hcos(Type a) { return Type(cosf((float)a)); } \
    inline Type hfloor(Type a) { return Type(floorf((float)a)); } \
    inline Type hceil(Type a) { return Type(ceilf((float)a)); } \
    inline Type hrint(Type a) { return Type(rintf((float)a)); } \
    inline Type __int2##name##_rn(int a) { return Type((float)a); } \
    inline int __##name##2int_rn(Type a) { return __float2int_rn((float)a); } \
    inline int __##name##2int_rz(Type a) { return __float2int_rz((float)a); } \
    inline Type2 __float22##name##2_rn(float2 a) { return {Type(a.x), Type(a.y)}; } \
    inline unsigned short __##name##_as_ushort(Type a) { return a.bits; } \
    inline Type __ushort_as_##name(unsigned short a) { Type b; b.bits = a; return b; } \
    inline bool __hisnan(Type a) { return isnan((float)a); } \
    inline Type __float2##name(float f) { return Type(f); } \
    inline Type __float2##name##_rn(float f) { return Type(f); } \
    inline float __##name##2float(Type a) { return (float)a; } \
    inline Type2 __float2##name##2_rn(float f) { return {Type(f), Type(f)}; } \
    inline Type2 __floats2##name##2_rn(float a, float b) { return {Type(a), Type(b)}; } \
    inline Type2 __##name##2##name##2(Type a) { return {a, a}; } \
    inline Type2 __halves2##name##2(Type a, Type b) { return {a, b}; } \
    inline float2 __##name##22float2(Type2 a) { return {(float)a.x, (float)a.y}; }
TILELAB_FLOAT16(__half, __half2, tilelab_to_half, tilelab_from_half, half)
TILELAB_FLOAT16(__nv_bfloat16, __nv_bfloat162, tilelab_to_bf16, tilelab_from_bf16, bfloat16)
using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
inline float __low2float(__half2 a) { return (float)a.x; }
inline float __high2float(__half2 a) { return (float)a.y; }
inline __half __low2half(__half2 a) { return a.x; }
inline __half __high2half(__half2 a) { return a.y; }
