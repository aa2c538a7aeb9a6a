"""What can go wrong between a CUDA C++ source and its result."""

import reprlib


def brief(value: object, most: int = 80) -> str:
    """``repr`` of anything in at most so many characters, for errors that quote what was given."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = most
    text = " ".join(short.repr(value).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


#: What the reading of something raises that is not of the form it should have.
READING = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class CudaError(Exception):
    """Anything that :mod:`tilelab.cudacpp` raises of itself."""


class BuildError(CudaError):
    """The source does not compile, or what would compile it is missing. ``log`` holds the compiler's whole output."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class LaunchError(CudaError, ValueError):
    """A launch that no GPU would run, or arguments that do not fit the kernel. Nothing has run."""


class KernelFault(CudaError):
    """A kernel that went wrong while it ran: out of bounds, a race, a barrier that not all threads reach, a crash."""

    def __init__(self, message: str, findings: "tuple[object, ...]" = ()) -> None:
        super().__init__(message)
        self.findings = findings
