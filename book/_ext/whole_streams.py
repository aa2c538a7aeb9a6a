"""Show what a cell printed as it was printed.

A kernel sends printed text in pieces, cut where its buffer was flushed. myst-nb 1.4 ends each piece with a line break,
so a line that was cut would be shown as two. Here the pieces are joined first.
"""

from myst_nb.core import render

coalesce = render.coalesce_streams


def whole_streams(outputs):
    """Return a cell's outputs with the pieces of each stream joined, and the rest done as myst-nb does it."""
    streams, kept = {}, []
    for output in outputs:
        if output["output_type"] != "stream":
            kept.append(output)
        elif output["name"] in streams:
            streams[output["name"]]["text"] += output["text"]
        else:
            streams[output["name"]] = output
            kept.append(output)
    return coalesce(kept)


def setup(app):
    """Register with Sphinx."""
    render.coalesce_streams = whole_streams
    return {"parallel_read_safe": True, "parallel_write_safe": True}
