"""Show what is said of a property as it is said.

Napoleon takes ``Extents: each at least 1`` of a property or a field for a type and a description. An empty comment in
front hides the colon from it.
"""


def hide_colon(app, what, name, obj, options, lines):
    """Put the comment in front; connected before Napoleon reads the lines."""
    if what in ("attribute", "data", "property") and lines:
        lines[:0] = ["..", ""]


def setup(app):
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", hide_colon, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
