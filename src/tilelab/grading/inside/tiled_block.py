"""Run a learner's tiled block for the variants of a job: storage orders, element types, paddings.

Reads ``job.json`` and ``answer.py``, writes ``result.json``: for each variant the buffer of C and how often the buffers
of A and B were read, or the error.
"""

import json
import struct
import traceback
from collections.abc import Callable
from typing import Any

from tilelab.layout import Layout

ANSWER = "answer.py"


def to_fp16(value: float) -> float:
    """Round to half precision."""
    return float(struct.unpack("<e", struct.pack("<e", value))[0])


def to_fp32(value: float) -> float:
    """Round to single precision."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def to_bf16(value: float) -> float:
    """Round to bfloat16: single precision with the lower half of the bits rounded away, to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000 if value == value else 0x7FC00000
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


ROUND: dict[str, Callable[[float], float]] = {"fp32": to_fp32, "fp16": to_fp16, "bf16": to_bf16}


class Buffer:
    """A flat buffer: elements of one type, poisoned where nothing was written, and it counts reads.

    An index must be a whole number inside: a buffer has no negative places.
    """

    def __init__(self, name: str, values: list[float | None], kind: str) -> None:
        self.name, self.reads = name, 0
        self._round = ROUND[kind]
        self._values = [float("nan") if value is None else self._round(value) for value in values]

    def __len__(self) -> int:
        """How many places it has."""
        return len(self._values)

    def _place(self, index: Any) -> int:
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"{self.name}[{index!r}]: a place in a buffer is one whole number; ask the layout for it")
        if not 0 <= index < len(self._values):
            raise IndexError(f"{self.name}[{index}]: the buffer has the places 0 to {len(self._values) - 1}")
        return index

    def __getitem__(self, index: Any) -> float:
        """Read one element."""
        place = self._place(index)
        self.reads += 1
        return self._values[place]

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write one element, rounded to the buffer's type."""
        place = self._place(index)
        self._values[place] = self._round(float(value))

    def contents(self) -> list[float | None]:
        """All elements, ``None`` for what is not finite."""
        return [value if abs(value) < float("inf") else None for value in self._values]


def run(function: Callable[..., object], job: dict[str, Any]) -> dict[str, Any]:
    """Run one variant: a block for each tile of C."""
    layouts = {name: Layout.parse(text) for name, text in job["layouts"].items()}
    buffers = {name: Buffer(name, job["values"][name], job["kind"]) for name in ("A", "B")}
    buffers["C"] = Buffer("C", [None] * layouts["C"].cosize, "fp32")
    (rows, _), (_, columns) = layouts["sA"].shape, layouts["sB"].shape
    m, n = layouts["C"].shape
    for bi in range(-(-m // rows)):
        for bj in range(-(-n // columns)):
            shared = {name: Buffer(name, [None] * layouts[name].cosize, job["kind"]) for name in ("sA", "sB")}
            everything = buffers | shared
            arguments = [part for name in ("A", "B", "C", "sA", "sB") for part in (everything[name], layouts[name])]
            function(*arguments, bi, bj)
    return {"C": buffers["C"].contents(), "reads": {name: buffers[name].reads for name in ("A", "B")}}


def main() -> None:
    """Do the job that lies in this folder."""
    with open("job.json", encoding="utf-8") as file:
        job = json.load(file)
    with open(ANSWER, encoding="utf-8") as file:
        source = file.read()
    results: list[dict[str, Any]] = []
    try:
        names: dict[str, Any] = {"__name__": "answer", "Layout": Layout}
        exec(compile(source, ANSWER, "exec"), names)
        function = names[job["function"]]
    except BaseException as error:
        results = [{"error": words(error)}] * len(job["variants"])
    else:
        for variant in job["variants"]:
            try:
                results.append(run(function, variant))
            except BaseException as error:
                results.append({"error": words(error)})
    with open("result.json", "w", encoding="utf-8") as file:
        json.dump(results, file)


def words(error: BaseException) -> str:
    """Say what went wrong, and in which line of the answer."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == ANSWER]
    if isinstance(error, SyntaxError) and error.filename == ANSWER:
        lines = [error.lineno]
    where = f" in line {lines[-1]} of your function" if lines else ""
    return f"{type(error).__name__}{where}: {error}"[:400]
