"""What a kernel's parameters are to the compiler, held at compile time to what was read from the text."""

from tilelab.cudacpp.diagnostics import FILE
from tilelab.cudacpp.source import DTYPES, SIZES, Declaration, Parameter

# Every name is reserved, for a source may define any other as a macro.
_TEMPLATES = """
template <class tilelab_T> struct tilelab_kind {
    static constexpr int tilelab_letter = 'x', tilelab_size = sizeof(tilelab_T);
};
template <> struct tilelab_kind<void> { static constexpr int tilelab_letter = 'x', tilelab_size = 0; };
template <class tilelab_T> struct tilelab_kind<const tilelab_T> : tilelab_kind<tilelab_T> {};
template <class tilelab_T> struct tilelab_kind<volatile tilelab_T> : tilelab_kind<tilelab_T> {};
template <class tilelab_T> struct tilelab_kind<const volatile tilelab_T> : tilelab_kind<tilelab_T> {};
template <class tilelab_T> struct tilelab_kind<tilelab_T&> {
    static constexpr int tilelab_letter = '&', tilelab_size = 0;
};
template <class tilelab_T> struct tilelab_kind<tilelab_T*> {
    static constexpr int tilelab_letter = 'p', tilelab_size = 8, tilelab_of = tilelab_kind<tilelab_T>::tilelab_letter;
    static constexpr int tilelab_element = tilelab_kind<tilelab_T>::tilelab_size;
};
#define TILELAB_KIND(tilelab_T, tilelab_kind_of_it) \\
    template <> struct tilelab_kind<tilelab_T> { \\
        static constexpr int tilelab_letter = tilelab_kind_of_it, tilelab_size = sizeof(tilelab_T); \\
    };
TILELAB_KIND(bool, 'b') TILELAB_KIND(float, 'f') TILELAB_KIND(double, 'f') TILELAB_KIND(char, 'i')
TILELAB_KIND(signed char, 'i') TILELAB_KIND(short, 'i') TILELAB_KIND(int, 'i') TILELAB_KIND(long, 'i')
TILELAB_KIND(long long, 'i') TILELAB_KIND(unsigned char, 'u') TILELAB_KIND(unsigned short, 'u')
TILELAB_KIND(unsigned, 'u') TILELAB_KIND(unsigned long, 'u') TILELAB_KIND(unsigned long long, 'u')
#undef TILELAB_KIND
template <int tilelab_I, class... tilelab_P> struct tilelab_at;
template <int tilelab_I, class tilelab_P, class... tilelab_R>
struct tilelab_at<tilelab_I, tilelab_P, tilelab_R...> : tilelab_at<tilelab_I - 1, tilelab_R...> {};
template <class tilelab_P, class... tilelab_R>
struct tilelab_at<0, tilelab_P, tilelab_R...> : tilelab_kind<tilelab_P> {};
template <class... tilelab_P> struct tilelab_parameters {
    static constexpr int tilelab_count = sizeof...(tilelab_P);
    template <int tilelab_I> using tilelab_parameter = tilelab_at<tilelab_I, tilelab_P...>;
};
template <class... tilelab_P> __host__ __device__ tilelab_parameters<tilelab_P...> tilelab_read(void (*)(tilelab_P...));
"""


def checks(declared: Declaration) -> str:
    """C++ to stand behind a source: it compiles only where the compiler reads the kernel's parameters as we do.

    Parameters
    ----------
    declared
        From :func:`tilelab.cudacpp.source.declaration`.
    """
    found = f"decltype(tilelab_read(&{declared.name}))"
    texts = [f'\n#line 1 "signature"{_TEMPLATES}']
    count = len(declared.parameters)
    texts.append(
        _assertion(
            declared, f"{found}::tilelab_count == {count}", f"{declared.name} is read as taking {count} parameters"
        )
    )
    for number, parameter in enumerate(declared.parameters):
        condition = _condition(f"{found}::tilelab_parameter<{number}>", parameter)
        if condition:
            texts.append(_assertion(declared, condition, f"parameter {number + 1} is read as {parameter}"))
    return "".join(texts)


def _condition(type_: str, parameter: Parameter) -> str:
    """What has to hold of a parameter's type; empty for a value whose type is unknown, which no launch can pass."""
    if not parameter.pointer:
        return (
            f"{type_}::tilelab_letter == '{_kind(parameter)}' && {type_}::tilelab_size == {_size(parameter)}"
            if parameter.dtype
            else ""
        )
    pointer = f"{type_}::tilelab_letter == 'p'"
    if not parameter.dtype:
        return pointer
    return f"{pointer} && {type_}::tilelab_of == '{_kind(parameter)}' && {type_}::tilelab_element == {_size(parameter)}"


def _size(parameter: Parameter) -> int:
    return SIZES[parameter.ctype]


def _kind(parameter: Parameter) -> str:
    """One letter; ``x`` for half, bfloat16 and vectors, which are classes."""
    if parameter.ctype[-1] in "234" or parameter.dtype in ("float16", "bfloat16"):
        return "x"
    return {"f": "f", "i": "i", "u": "u", "b": "b"}[DTYPES[parameter.ctype][0]]


def _assertion(declared: Declaration, condition: str, what: str) -> str:
    """An assertion that fails at the kernel's own line."""
    quoted = what.replace("\\", "").replace('"', "'")
    reason = f"{quoted}, but is something else to the compiler: write the types themselves, in one place"
    return f'#line {declared.line} "{FILE}"\nstatic_assert({condition}, "{reason}");\n'
