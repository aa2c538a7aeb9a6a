"""Compiles one source with NVRTC, in a process of its own: reads ``job.json``, writes ``result.json`` and the code.

It stands alone: it is copied into the folder where it runs.
"""

import ctypes
import json
from collections.abc import Iterable
from ctypes import Array, byref, c_char_p, c_size_t, c_void_p, create_string_buffer
from pathlib import Path


def _texts(texts: Iterable[str]) -> Array[c_char_p]:
    encoded = [text.encode() for text in texts]
    return (c_char_p * len(encoded))(*encoded)


def main() -> None:
    """Compile."""
    job = json.loads(Path("job.json").read_text())
    for beside in Path(job["library"]).parent.glob("libnvrtc-builtins.so*"):  # which the library looks for by name
        ctypes.CDLL(str(beside), mode=ctypes.RTLD_GLOBAL)
    library, program = ctypes.CDLL(job["library"]), c_void_p()
    source, name = Path(job["file"]).read_bytes(), job["name"].encode()
    names, texts = (_texts(part) for part in (job["headers"], job["headers"].values()))
    library.nvrtcCreateProgram(byref(program), source, job["file"].encode(), len(names), texts, names)
    library.nvrtcAddNameExpression(program, name)
    Path("result.json").write_text("{}")  # from here on whatever ends this process is in the source
    options = _texts(job["options"])
    failed = library.nvrtcCompileProgram(program, len(options), options)
    size, symbol = c_size_t(), c_char_p()
    library.nvrtcGetProgramLogSize(program, byref(size))
    log = create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    if not failed and not library.nvrtcGetLoweredName(program, name, byref(symbol)):
        library.nvrtcGetCUBINSize(program, byref(size))
        code = create_string_buffer(size.value)
        library.nvrtcGetCUBIN(program, code)
        Path("kernel.cubin").write_bytes(code.raw)
    told = {"log": log.value.decode(errors="replace"), "symbol": (symbol.value or b"").decode()}
    Path("result.json").write_text(json.dumps(told))


main()
