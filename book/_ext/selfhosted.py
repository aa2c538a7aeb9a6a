"""Keep the built pages free of requests to other hosts.

Jupyter Book 1 loads sphinx-thebe even where it is switched off, and some extensions add a font from a CDN.
Each page's lists of scripts and styles are filtered just before it is written.
"""


def foreign(asset) -> bool:
    """Tell whether a script or style is loaded from another host, or belongs to sphinx-thebe."""
    name = str(getattr(asset, "filename", asset) or "")
    body = str((getattr(asset, "attributes", None) or {}).get("body", ""))
    return name.startswith(("http:", "https:", "//")) or "thebe" in name.lower() or "THEBE" in body


def drop_foreign_assets(app, pagename, templatename, context, doctree):
    """Filter the page's assets; connected to ``html-page-context`` after all who add some."""
    for kind in ("css_files", "script_files"):
        context[kind] = [asset for asset in context.get(kind, []) if not foreign(asset)]


def setup(app):
    """Register with Sphinx."""
    app.connect("html-page-context", drop_foreign_assets, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
