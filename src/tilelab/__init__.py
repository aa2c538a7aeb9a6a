"""GPU memory layouts, a simulated GPU, CUDA C++ kernels and a judge that can be trusted.

``import tilelab`` gives the layout algebra and tensors at once and nothing heavy: numpy, torch and matplotlib load only
when something that needs them is used. The other floors are modules of their own: ``tilelab.simt``,
``tilelab.cudacpp``, ``tilelab.kernels``, ``tilelab.measure``, ``tilelab.draw`` and ``tilelab.grading``.
"""

from typing import Any

from tilelab.layout import *  # noqa: F403
from tilelab.layout import __all__ as _algebra
from tilelab.layout.display import set_drawer
from tilelab.tensor import *  # noqa: F403
from tilelab.tensor import __all__ as _tensors

__version__ = "0.1.0"
#: Python's own ``filter`` and ``zip`` survive ``from tilelab import *``.
__all__ = [name for name in [*_algebra, *_tensors] if name not in ("filter", "zip")]


def _draw(value: Any) -> str:
    """Draw a value for a notebook; the drawing floor loads when the first picture is asked for."""
    from tilelab.draw import svg_of

    return svg_of(value)


def __getattr__(name: str) -> Any:
    """Give ``tilelab.explain``, which draws, when it is first asked for."""
    if name == "explain":
        from tilelab.draw.explain import explain

        return explain
    raise AttributeError(f"module 'tilelab' has no attribute {name!r}")


set_drawer(_draw)
