"""GPU memory layouts, a simulated GPU, CUDA C++ kernels and a judge that can be trusted.

``import tilelab`` gives the layout algebra at once and nothing heavy: numpy, torch and matplotlib load only
when something that needs them is used. The other floors are modules of their own: ``tilelab.simt``,
``tilelab.cudacpp``, ``tilelab.kernels``, ``tilelab.measure``, ``tilelab.draw`` and ``tilelab.grading``.
"""

__version__ = "0.1.0"
