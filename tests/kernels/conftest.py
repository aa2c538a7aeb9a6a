"""Builds of the tests stay out of the user's cache, and are shared by the tests of a run."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("TILELAB_CACHE", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()
