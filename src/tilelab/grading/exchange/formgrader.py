"""Formgrader goes on after a write that failed: a Jupyter server extension beside nbgrader's own.

Formgrader keeps one session to the gradebook for all its pages. A write that fails, such as one into a gradebook that
is locked by a grading that runs, leaves that session refusing everything until the server starts anew.
"""

from typing import Any

from nbgrader.server_extensions.formgrader.base import BaseHandler


def mend() -> None:
    """Have each request give its transaction back, as it ended."""
    finished = BaseHandler.on_finish
    if getattr(finished, "rolls_back", False):
        return

    def on_finish(page: Any) -> None:
        gradebook = page.settings.get("nbgrader_gradebook")
        if gradebook is not None:
            gradebook.db.rollback()  # what was to be kept is committed
        finished(page)

    on_finish.rolls_back = True  # type: ignore[attr-defined]
    BaseHandler.on_finish = on_finish


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "tilelab.grading.exchange.formgrader"}]


def _load_jupyter_server_extension(app: Any) -> None:
    """Mend formgrader's pages."""
    mend()
