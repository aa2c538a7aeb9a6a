// What g++ and nvcc give every kernel without an include, or with one of the C and C++ standard library, and NVRTC does
// not. NVRTC reads this before a source (see cubin.py), so that what is right in emulation compiles for a GPU as well.
// Functions without a word before them are device code here: --device-as-default-execution-space.
#pragma once

// A helper that is marked for the host is device code too, as it is one function in emulation.
#undef __host__
#define __host__

// ---- integers: <stdint.h>, <stddef.h>, <limits.h>. The 64-bit ones are spelt as on Linux, but as libcu++ spells them
// for NVRTC where a source includes headers that bring libcu++ in.
#ifdef TILELAB_LIBCUXX
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
typedef long int64_t;
typedef unsigned long uint64_t;
#endif
typedef signed char int8_t, int_least8_t, int_fast8_t;
typedef short int16_t, int_least16_t, int_fast16_t;
typedef int int32_t, int_least32_t, int_fast32_t;
typedef int64_t int_least64_t, int_fast64_t, intptr_t, intmax_t;
typedef unsigned char uint8_t, uint_least8_t, uint_fast8_t;
typedef unsigned short uint16_t, uint_least16_t, uint_fast16_t, ushort;
typedef unsigned int uint32_t, uint_least32_t, uint_fast32_t, uint;
typedef uint64_t uint_least64_t, uint_fast64_t, uintptr_t, uintmax_t;
typedef unsigned long ulong;
typedef long ssize_t;
typedef decltype(nullptr) nullptr_t;
#define offsetof(type, member) ((size_t)&(((type*)0)->member))
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-INT_MAX - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-LONG_MAX - 1L)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-LLONG_MAX - 1LL)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
#define INT8_MIN SCHAR_MIN
#define INT8_MAX SCHAR_MAX
#define UINT8_MAX UCHAR_MAX
#define INT16_MIN SHRT_MIN
#define INT16_MAX SHRT_MAX
#define UINT16_MAX USHRT_MAX
#define INT32_MIN INT_MIN
#define INT32_MAX INT_MAX
#define UINT32_MAX UINT_MAX
#define INT64_MIN LLONG_MIN
#define INT64_MAX LLONG_MAX
#define UINT64_MAX ULLONG_MAX
#define INTPTR_MIN INT64_MIN
#define INTPTR_MAX INT64_MAX
#define UINTPTR_MAX UINT64_MAX
#define PTRDIFF_MIN LONG_MIN
#define PTRDIFF_MAX LONG_MAX
#define SIZE_MAX ULONG_MAX
#define INT32_C(x) x
#define UINT32_C(x) x##U
#define INT64_C(x) x##LL
#define UINT64_C(x) x##ULL
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1

// ---- numbers: <float.h>, <math.h>
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MAX_10_EXP 38
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_TRUE_MIN 1.401298464e-45f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_MIN_10_EXP (-307)
#define DBL_MAX_10_EXP 308
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_TRUE_MIN 4.9406564584124654e-324
#define DBL_EPSILON 2.2204460492503131e-16
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#define HUGE_VALF INFINITY
#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000)
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

// ---- texts and printing: <string.h>, <stdio.h>; memcpy, memset and printf are built in. Templates, so that a source
// may have functions of its own by these names.
template <class = void> inline size_t strlen(const char* text) {
    size_t length = 0;
    while (text[length]) ++length;
    return length;
}
template <class = void> inline int memcmp(const void* a, const void* b, size_t bytes) {
    const unsigned char *x = (const unsigned char*)a, *y = (const unsigned char*)b;
    for (size_t i = 0; i < bytes; ++i)
        if (x[i] != y[i]) return x[i] - y[i];
    return 0;
}
template <class = void> inline int strncmp(const char* a, const char* b, size_t most) {
    for (size_t i = 0; i < most; ++i)
        if (a[i] != b[i] || !a[i]) return (unsigned char)a[i] - (unsigned char)b[i];
    return 0;
}
template <class = void> inline int strcmp(const char* a, const char* b) { return strncmp(a, b, SIZE_MAX); }
template <class = void> inline int puts(const char* text) { return printf("%s\n", text); }
template <class = void> inline int putchar(int letter) { return printf("%c", letter); }

// ---- mathematics with whole numbers, or a float beside a double: in double, as in <cmath>
template <class T> struct tilelab_number { enum { whole = 0, real = 0 }; };
#define TILELAB_NUMBER(T, whole_, real_) template <> struct tilelab_number<T> { enum { whole = whole_, real = real_ }; };
TILELAB_NUMBER(bool, 1, 0) TILELAB_NUMBER(char, 1, 0) TILELAB_NUMBER(signed char, 1, 0)
TILELAB_NUMBER(unsigned char, 1, 0) TILELAB_NUMBER(short, 1, 0) TILELAB_NUMBER(unsigned short, 1, 0)
TILELAB_NUMBER(int, 1, 0) TILELAB_NUMBER(unsigned, 1, 0) TILELAB_NUMBER(long, 1, 0) TILELAB_NUMBER(unsigned long, 1, 0)
TILELAB_NUMBER(long long, 1, 0) TILELAB_NUMBER(unsigned long long, 1, 0)
TILELAB_NUMBER(float, 0, 1) TILELAB_NUMBER(double, 0, 2)
#undef TILELAB_NUMBER
template <bool Holds> struct tilelab_double {};
template <> struct tilelab_double<true> { typedef double type; };
template <class A, class B, int a = tilelab_number<A>::real, int b = tilelab_number<B>::real> struct tilelab_mixed
    : tilelab_double<(tilelab_number<A>::whole + a > 0) && (tilelab_number<B>::whole + b > 0) && (a != b || a == 0)> {};
#define TILELAB_ONE(name) \
    template <class T> inline typename tilelab_double<tilelab_number<T>::whole>::type name(T x) { return name(double(x)); }
#define TILELAB_TWO(name) \
    template <class A, class B> inline typename tilelab_mixed<A, B>::type name(A a, B b) { return name(double(a), double(b)); }
TILELAB_ONE(sqrt) TILELAB_ONE(cbrt) TILELAB_ONE(exp) TILELAB_ONE(exp2) TILELAB_ONE(expm1) TILELAB_ONE(log)
TILELAB_ONE(log2) TILELAB_ONE(log10) TILELAB_ONE(log1p) TILELAB_ONE(sin) TILELAB_ONE(cos) TILELAB_ONE(tan)
TILELAB_ONE(asin) TILELAB_ONE(acos) TILELAB_ONE(atan) TILELAB_ONE(sinh) TILELAB_ONE(cosh) TILELAB_ONE(tanh)
TILELAB_ONE(asinh) TILELAB_ONE(acosh) TILELAB_ONE(atanh) TILELAB_ONE(erf) TILELAB_ONE(erfc) TILELAB_ONE(tgamma)
TILELAB_ONE(lgamma) TILELAB_ONE(fabs) TILELAB_ONE(floor) TILELAB_ONE(ceil) TILELAB_ONE(trunc) TILELAB_ONE(round)
TILELAB_ONE(rint) TILELAB_ONE(nearbyint)
TILELAB_TWO(pow) TILELAB_TWO(fmin) TILELAB_TWO(fmax) TILELAB_TWO(fmod) TILELAB_TWO(fdim) TILELAB_TWO(hypot)
TILELAB_TWO(atan2) TILELAB_TWO(copysign) TILELAB_TWO(remainder)
#undef TILELAB_ONE
#undef TILELAB_TWO

// ---- the same in std, and what is in std alone: <cmath>, <algorithm>, <utility>, <limits>, <type_traits>
// The words from here on are those that a source may use behind std:: (see device_sources.py).
namespace std {
// move, forward and initializer_list are built in.
using ::size_t; using ::ptrdiff_t; using ::nullptr_t;
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::intptr_t; using ::intmax_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uintptr_t; using ::uintmax_t;
using ::memcpy; using ::memset; using ::memcmp; using ::strlen; using ::strcmp; using ::strncmp;
using ::printf; using ::puts; using ::putchar; using ::malloc; using ::free; using ::abs; using ::labs; using ::llabs;
#define TILELAB_MATH(name) using ::name; using ::name##f;
TILELAB_MATH(fabs) TILELAB_MATH(sqrt) TILELAB_MATH(cbrt) TILELAB_MATH(hypot) TILELAB_MATH(exp) TILELAB_MATH(exp2)
TILELAB_MATH(expm1) TILELAB_MATH(log) TILELAB_MATH(log2) TILELAB_MATH(log10) TILELAB_MATH(log1p) TILELAB_MATH(logb)
TILELAB_MATH(ilogb) TILELAB_MATH(pow) TILELAB_MATH(sin) TILELAB_MATH(cos) TILELAB_MATH(tan) TILELAB_MATH(asin)
TILELAB_MATH(acos) TILELAB_MATH(atan) TILELAB_MATH(atan2) TILELAB_MATH(sinh) TILELAB_MATH(cosh) TILELAB_MATH(tanh)
TILELAB_MATH(asinh) TILELAB_MATH(acosh) TILELAB_MATH(atanh) TILELAB_MATH(erf) TILELAB_MATH(erfc) TILELAB_MATH(tgamma)
TILELAB_MATH(lgamma) TILELAB_MATH(fma) TILELAB_MATH(fmod) TILELAB_MATH(remainder) TILELAB_MATH(remquo)
TILELAB_MATH(fmin) TILELAB_MATH(fmax) TILELAB_MATH(fdim) TILELAB_MATH(floor) TILELAB_MATH(ceil) TILELAB_MATH(trunc)
TILELAB_MATH(round) TILELAB_MATH(lround) TILELAB_MATH(llround) TILELAB_MATH(rint) TILELAB_MATH(lrint)
TILELAB_MATH(llrint) TILELAB_MATH(nearbyint) TILELAB_MATH(copysign) TILELAB_MATH(nextafter) TILELAB_MATH(ldexp)
TILELAB_MATH(scalbn) TILELAB_MATH(scalbln) TILELAB_MATH(frexp) TILELAB_MATH(modf) TILELAB_MATH(nan)
#undef TILELAB_MATH
using ::isnan; using ::isinf; using ::isfinite; using ::signbit;

template <class T> constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T, class F> constexpr const T& min(const T& a, const T& b, F less) { return less(b, a) ? b : a; }
template <class T, class F> constexpr const T& max(const T& a, const T& b, F less) { return less(a, b) ? b : a; }
template <class T> constexpr T min(initializer_list<T> values) {
    T least = *values.begin();
    for (const T& value : values) least = value < least ? value : least;
    return least;
}
template <class T> constexpr T max(initializer_list<T> values) {
    T most = *values.begin();
    for (const T& value : values) most = most < value ? value : most;
    return most;
}
template <class T> constexpr const T& clamp(const T& value, const T& low, const T& high) {
    return value < low ? low : high < value ? high : value;
}
template <class T> constexpr void swap(T& a, T& b) {
    T kept = static_cast<T&&>(a);
    a = static_cast<T&&>(b);
    b = static_cast<T&&>(kept);
}
template <class T, class U = T> constexpr T exchange(T& place, U&& value) {
    T kept = static_cast<T&&>(place);
    place = static_cast<U&&>(value);
    return kept;
}
template <class A, class B> struct pair {
    typedef A first_type;
    typedef B second_type;
    A first;
    B second;
    constexpr pair() : first(), second() {}
    constexpr pair(const A& a, const B& b) : first(a), second(b) {}
};
template <class A, class B> constexpr bool operator==(const pair<A, B>& p, const pair<A, B>& q) {
    return p.first == q.first && p.second == q.second;
}
template <class A, class B> constexpr bool operator!=(const pair<A, B>& p, const pair<A, B>& q) { return !(p == q); }
template <class A, class B> constexpr pair<A, B> make_pair(A first, B second) { return {first, second}; }
template <class I, class T> constexpr void fill(I first, I last, const T& value) {
    for (; first != last; ++first) *first = value;
}
template <class I, class J> constexpr J copy(I first, I last, J to) {
    for (; first != last; ++first, ++to) *to = *first;
    return to;
}

template <class T, T Value> struct integral_constant {
    static constexpr T value = Value;
    typedef T value_type;
    typedef integral_constant type;
    constexpr operator T() const { return Value; }
};
template <bool Value> using bool_constant = integral_constant<bool, Value>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;
template <bool Holds, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool Holds, class T = void> using enable_if_t = typename enable_if<Holds, T>::type;
template <bool Holds, class T, class F> struct conditional { typedef T type; };
template <class T, class F> struct conditional<false, T, F> { typedef F type; };
template <bool Holds, class T, class F> using conditional_t = typename conditional<Holds, T, F>::type;
#define TILELAB_REMOVE(name, form) \
    template <class T> struct name { typedef T type; }; \
    template <class T> struct name<form> { typedef T type; }; \
    template <class T> using name##_t = typename name<T>::type;
TILELAB_REMOVE(remove_const, const T)
TILELAB_REMOVE(remove_volatile, volatile T)
TILELAB_REMOVE(remove_pointer, T*)
#undef TILELAB_REMOVE
template <class T> struct remove_reference { typedef T type; };
template <class T> struct remove_reference<T&> { typedef T type; };
template <class T> struct remove_reference<T&&> { typedef T type; };
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> struct remove_cv { typedef remove_const_t<remove_volatile_t<T>> type; };
template <class T> using remove_cv_t = typename remove_cv<T>::type;
#define TILELAB_IS(name, says) \
    template <class T> struct name : bool_constant<says> {}; \
    template <class T> inline constexpr bool name##_v = name<T>::value;
template <class T, class U> inline constexpr bool is_same_v = false;
template <class T> inline constexpr bool is_same_v<T, T> = true;
template <class T, class U> struct is_same : bool_constant<is_same_v<T, U>> {};
template <class T, class... U> inline constexpr bool tilelab_among = (is_same_v<remove_cv_t<T>, U> || ...);
TILELAB_IS(is_void, (is_same_v<remove_cv_t<T>, void>))
TILELAB_IS(is_floating_point, (tilelab_among<T, float, double, long double>))
TILELAB_IS(is_integral, (tilelab_among<T, bool, char, signed char, unsigned char, short, unsigned short, int, unsigned, long, unsigned long, long long, unsigned long long, wchar_t, char16_t, char32_t>))
TILELAB_IS(is_arithmetic, is_integral_v<T> || is_floating_point_v<T>)
TILELAB_IS(is_signed, is_floating_point_v<T> || (tilelab_among<T, char, signed char, short, int, long, long long, wchar_t>))
TILELAB_IS(is_unsigned, is_integral_v<T> && !is_signed_v<T>)
TILELAB_IS(is_const, (!is_same_v<T, remove_const_t<T>>))
TILELAB_IS(is_pointer, (!is_same_v<remove_cv_t<T>, remove_pointer_t<remove_cv_t<T>>>))
TILELAB_IS(is_reference, (!is_same_v<T, remove_reference_t<T>>))
TILELAB_IS(is_trivially_copyable, __is_trivially_copyable(T))
#undef TILELAB_IS

// A plain class has functions alone: what constants it had would lie in the memory of every kernel, used or not.
template <class T> struct tilelab_limits;
template <class T> struct numeric_limits : tilelab_limits<T> {
    static constexpr bool is_specialized = true, is_signed = static_cast<T>(-1) < static_cast<T>(0);
    static constexpr bool is_integer = tilelab_limits<T>::tilelab_whole(), is_exact = is_integer;
    static constexpr bool has_infinity = !is_integer, has_quiet_NaN = !is_integer;
    static constexpr int digits = tilelab_limits<T>::tilelab_digits(), radix = 2;
    static constexpr int digits10 = (digits - !is_integer) * 30103L / 100000;
};
template <class T> struct numeric_limits<const T> : numeric_limits<T> {};
#define TILELAB_LIMITS(T, lowest_, min_, max_, digits_, whole_, epsilon_, infinity_, nan_) \
    template <> struct tilelab_limits<T> { \
        static constexpr bool tilelab_whole() { return whole_; } \
        static constexpr int tilelab_digits() { return digits_; } \
        static constexpr T lowest() { return lowest_; } \
        static constexpr T min() { return min_; } \
        static constexpr T max() { return max_; } \
        static constexpr T epsilon() { return epsilon_; } \
        static constexpr T infinity() { return infinity_; } \
        static constexpr T quiet_NaN() { return nan_; } \
    };
#define TILELAB_WHOLE(T, min, max, digits) TILELAB_LIMITS(T, min, min, max, digits, true, 0, 0, 0)
TILELAB_WHOLE(bool, false, true, 1)
TILELAB_WHOLE(char, CHAR_MIN, CHAR_MAX, 7)
TILELAB_WHOLE(signed char, SCHAR_MIN, SCHAR_MAX, 7)
TILELAB_WHOLE(unsigned char, 0, UCHAR_MAX, 8)
TILELAB_WHOLE(short, SHRT_MIN, SHRT_MAX, 15)
TILELAB_WHOLE(unsigned short, 0, USHRT_MAX, 16)
TILELAB_WHOLE(int, INT_MIN, INT_MAX, 31)
TILELAB_WHOLE(unsigned, 0, UINT_MAX, 32)
TILELAB_WHOLE(long, LONG_MIN, LONG_MAX, 63)
TILELAB_WHOLE(unsigned long, 0, ULONG_MAX, 64)
TILELAB_WHOLE(long long, LLONG_MIN, LLONG_MAX, 63)
TILELAB_WHOLE(unsigned long long, 0, ULLONG_MAX, 64)
TILELAB_LIMITS(float, -FLT_MAX, FLT_MIN, FLT_MAX, 24, false, FLT_EPSILON, INFINITY, NAN)
TILELAB_LIMITS(double, -DBL_MAX, DBL_MIN, DBL_MAX, 53, false, DBL_EPSILON, HUGE_VAL, double(NAN))
#undef TILELAB_WHOLE
#undef TILELAB_LIMITS
}  // namespace std
