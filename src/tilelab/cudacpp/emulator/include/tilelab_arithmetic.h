// Arithmetic intrinsics, half and bfloat16.
#pragma once

// ---- integers and fp32
// Of a NaN and a number a GPU takes the number. (a != a is true of a NaN alone.)
template <class A, class B> constexpr auto min(A a, B b) -> decltype(a + b) { return a < b || b != b ? a : b; }
template <class A, class B> constexpr auto max(A a, B b) -> decltype(a + b) { return b < a || b != b ? a : b; }
// Conversions on a GPU saturate, and make 0 of a NaN.
inline int tilelab_to_int(double a) { return a != a ? 0 : a >= 2147483647.0 ? INT_MAX : a <= -2147483648.0 ? INT_MIN : (int)a; }
inline unsigned tilelab_to_uint(double a) { return a != a || a <= 0 ? 0u : a >= 4294967295.0 ? UINT_MAX : (unsigned)a; }
inline long long tilelab_to_ll(double a) {
    return a != a ? 0 : a >= 0x1p63 ? LLONG_MAX : a <= -0x1p63 ? LLONG_MIN : (long long)a;
}
#define TILELAB_ROUNDED(suffix, rounding) \
    inline int __float2int_##suffix(float a) { return tilelab_to_int(rounding(a)); } \
    inline unsigned __float2uint_##suffix(float a) { return tilelab_to_uint(rounding(a)); } \
    inline int __double2int_##suffix(double a) { return tilelab_to_int(rounding(a)); } \
    inline unsigned __double2uint_##suffix(double a) { return tilelab_to_uint(rounding(a)); } \
    inline long long __float2ll_##suffix(float a) { return tilelab_to_ll(rounding(a)); } \
    inline long long __double2ll_##suffix(double a) { return tilelab_to_ll(rounding(a)); }
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
inline unsigned long long __brevll(unsigned long long a) {
    return (unsigned long long)__brev((unsigned)a) << 32 | __brev((unsigned)(a >> 32));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which) {
    unsigned r = 0;
    for (int i = 0; i < 4; ++i) r |= (unsigned)(((unsigned long long)b << 32 | a) >> 8 * (which >> 4 * i & 7) & 0xff) << 8 * i;
    return r;
}
// Of the 64 bits of two words, those that a shift brings into one.
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) { return (unsigned)((((unsigned long long)high << 32 | low) << (by & 31)) >> 32); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) { return (unsigned)(((unsigned long long)high << 32 | low) >> (by & 31)); }
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) { return by >= 32 ? low : __funnelshift_l(low, high, by); }
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned by) { return by >= 32 ? high : __funnelshift_r(low, high, by); }
inline unsigned __sad(int a, int b, unsigned sum) { return (unsigned)(a > b ? (long long)a - b : (long long)b - a) + sum; }
inline unsigned __usad(unsigned a, unsigned b, unsigned sum) { return (a > b ? a - b : b - a) + sum; }
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)((unsigned __int128)a * b >> 64); }
inline int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
inline int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b) >> 1); }
inline unsigned __urhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b + 1) >> 1); }
inline unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }
inline void __sincosf(float a, float* sine, float* cosine) { *sine = sinf(a), *cosine = cosf(a); }
inline double sinpi(double a) { return sin(3.14159265358979323846 * fmod(a, 2.0)); }
inline double cospi(double a) { return cos(3.14159265358979323846 * fmod(a, 2.0)); }
inline float sinpif(float a) { return (float)sinpi(a); }
inline float cospif(float a) { return (float)cospi(a); }
inline void sincospif(float a, float* sine, float* cosine) { *sine = sinpif(a), *cosine = cospif(a); }
inline float rhypotf(float a, float b) { return 1.0f / hypotf(a, b); }
inline float rcbrtf(float a) { return 1.0f / cbrtf(a); }
inline float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }
inline float normcdff(float a) { return 0.5f * erfcf(-a * 0.70710678f); }
inline float __ll2float_rn(long long a) { return (float)a; }
inline float __ull2float_rn(unsigned long long a) { return (float)a; }
inline double __ll2double_rn(long long a) { return (double)a; }
inline double __int2double_rn(int a) { return a; }
inline double __uint2double_rn(unsigned a) { return a; }
inline double __hiloint2double(int high, int low) { return tilelab_value<double>((uint64_t)(unsigned)high << 32 | (unsigned)low); }
inline int __double2hiint(double a) { return (int)(tilelab_bits(a) >> 32); }
inline int __double2loint(double a) { return (int)tilelab_bits(a); }
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
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
    for (int i = 0; i < 32; i += 8) sum += (uint8_t)(a >> i) * (uint8_t)(b >> i);
    return sum;
}
inline int __dp4a(char4 a, char4 b, int sum) { return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned sum) {
    return sum + (unsigned)(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
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

#define TILELAB_BOTH(Type2, name) \
    inline Type2 h2##name(Type2 a) { return {h##name(a.x), h##name(a.y)}; }
#define TILELAB_COMPARE2(Type, Type2, op) \
    inline Type2 __h##op##2(Type2 a, Type2 b) { return {Type((float)__h##op(a.x, b.x)), Type((float)__h##op(a.y, b.y))}; } \
    inline bool __hb##op##2(Type2 a, Type2 b) { return __h##op(a.x, b.x) && __h##op(a.y, b.y); }
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
        Type& operator++() { return *this += Type(1.0f); } \
        Type& operator--() { return *this -= Type(1.0f); } \
        Type operator++(int) { const Type old = *this; ++*this; return old; } \
        Type operator--(int) { const Type old = *this; --*this; return old; } \
    }; \
    struct alignas(4) Type2 { \
        Type x, y; \
        Type2() = default; \
        Type2(Type x, Type y) : x(x), y(y) {} \
    }; \
    inline Type operator+(Type a, Type b) { return a += b; } \
    inline Type operator-(Type a, Type b) { return a -= b; } \
    inline Type operator*(Type a, Type b) { return a *= b; } \
    inline Type operator/(Type a, Type b) { return a /= b; } \
    inline Type operator-(Type a) { return Type(-(float)a); } \
    inline Type2 operator+(Type2 a, Type2 b) { return {a.x + b.x, a.y + b.y}; } \
    inline Type2 operator-(Type2 a, Type2 b) { return {a.x - b.x, a.y - b.y}; } \
    inline Type2 operator*(Type2 a, Type2 b) { return {a.x * b.x, a.y * b.y}; } \
    inline Type2 operator/(Type2 a, Type2 b) { return {a.x / b.x, a.y / b.y}; } \
    inline Type2 operator-(Type2 a) { return {-a.x, -a.y}; } \
    inline Type2& operator+=(Type2& a, Type2 b) { return a = a + b; } \
    inline Type2& operator-=(Type2& a, Type2 b) { return a = a - b; } \
    inline Type2& operator*=(Type2& a, Type2 b) { return a = a * b; } \
    inline Type2& operator/=(Type2& a, Type2 b) { return a = a / b; } \
    inline bool operator==(Type2 a, Type2 b) { return (float)a.x == (float)b.x && (float)a.y == (float)b.y; } \
    inline bool operator!=(Type2 a, Type2 b) { return (float)a.x != (float)b.x && (float)a.y != (float)b.y; } \
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
    inline Type2 __h2div(Type2 a, Type2 b) { return a / b; } \
    inline Type2 __hneg2(Type2 a) { return -a; } \
    inline Type2 __habs2(Type2 a) { return {__habs(a.x), __habs(a.y)}; } \
    inline Type2 __hmin2(Type2 a, Type2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; } \
    inline Type2 __hmax2(Type2 a, Type2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; } \
    TILELAB_COMPARE2(Type, Type2, eq) TILELAB_COMPARE2(Type, Type2, ne) TILELAB_COMPARE2(Type, Type2, lt) \
    TILELAB_COMPARE2(Type, Type2, le) TILELAB_COMPARE2(Type, Type2, gt) TILELAB_COMPARE2(Type, Type2, ge) \
    inline Type __hadd_sat(Type a, Type b) { return Type(__saturatef((float)(a + b))); } \
    inline Type __hmul_sat(Type a, Type b) { return Type(__saturatef((float)(a * b))); } \
    inline Type __hfma_sat(Type a, Type b, Type c) { return Type(__saturatef((float)__hfma(a, b, c))); } \
    inline Type __hfma_relu(Type a, Type b, Type c) { return __hmax(__hfma(a, b, c), Type(0.0f)); } \
    inline Type2 __hfma2_relu(Type2 a, Type2 b, Type2 c) { return __hmax2(__hfma2(a, b, c), Type2(Type(0.0f), Type(0.0f))); } \
    inline int __hisinf(Type a) { return isinf((float)a) ? ((float)a < 0 ? -1 : 1) : 0; } \
    inline Type htanh(Type a) { return Type(tanhf((float)a)); } \
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
    TILELAB_BOTH(Type2, exp) TILELAB_BOTH(Type2, exp2) TILELAB_BOTH(Type2, log) TILELAB_BOTH(Type2, log2) \
    TILELAB_BOTH(Type2, sqrt) TILELAB_BOTH(Type2, rsqrt) TILELAB_BOTH(Type2, rcp) TILELAB_BOTH(Type2, sin) \
    TILELAB_BOTH(Type2, cos) TILELAB_BOTH(Type2, floor) TILELAB_BOTH(Type2, ceil) TILELAB_BOTH(Type2, rint) \
    TILELAB_BOTH(Type2, tanh) \
    inline Type __uint2##name##_rn(unsigned a) { return Type((float)a); } \
    inline Type __short2##name##_rn(short a) { return Type((float)a); } \
    inline Type __double2##name(double a) { return Type(a); } \
    inline unsigned __##name##2uint_rn(Type a) { return __float2uint_rn((float)a); } \
    inline unsigned __##name##2uint_rz(Type a) { return __float2uint_rz((float)a); } \
    inline Type2 make_##name##2(Type a, Type b) { return {a, b}; } \
    inline float __low2float(Type2 a) { return (float)a.x; } \
    inline float __high2float(Type2 a) { return (float)a.y; } \
    inline Type __low2##name(Type2 a) { return a.x; } \
    inline Type __high2##name(Type2 a) { return a.y; } \
    inline Type2 __low2##name##2(Type2 a) { return {a.x, a.x}; } \
    inline Type2 __high2##name##2(Type2 a) { return {a.y, a.y}; } \
    inline Type2 __lows2##name##2(Type2 a, Type2 b) { return {a.x, b.x}; } \
    inline Type2 __highs2##name##2(Type2 a, Type2 b) { return {a.y, b.y}; } \
    inline Type2 __lowhigh2highlow(Type2 a) { return {a.y, a.x}; } \
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
#undef TILELAB_BOTH
#undef TILELAB_COMPARE2
