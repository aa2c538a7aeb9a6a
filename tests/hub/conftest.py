"""A real hub with its proxy and services on loopback, started once for a test process."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hubs import PASSWORD, Hub, write_course


def pytest_collection_modifyitems(items):
    """Give the first test that needs the hub the time to release a course and start it, whichever it is."""
    for item in items:
        if "hub" in getattr(item, "fixturenames", ()) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def state_folder():
    """Return a folder that every user can reach; pytest closes its own to others."""
    with tempfile.TemporaryDirectory(prefix="tilelab-hub-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def hub(state_folder):
    """Start a hub on which exercises are released, and end it with all it started."""
    from demo import release, walls
    from deployment import read_deployment
    from running import RunningHub

    if shutil.which("node") is None:
        pytest.skip("the hub's proxy needs node: make hub-packages")
    file = write_course(state_folder, release='["exercises"]')
    of = read_deployment(file)
    of.state.mkdir()
    accounts, before = walls(of)
    os.environ["TILELAB_ACCOUNTS"] = accounts
    of = read_deployment(file)
    release(of, before)
    with RunningHub(of, before, {"TILELAB_DEMO_PASSWORD": PASSWORD}) as running:
        yield Hub(running, before)


@pytest.fixture(scope="session")
def people(hub):
    """Return everybody, logged in."""
    from visitor import Visitor

    return {name: Visitor(hub.base, name, PASSWORD) for name in hub.of.users}


@pytest.fixture(scope="session")
def exchanges(people):
    """Return everybody's view of the exchange."""
    return {name: one.exchange() for name, one in people.items()}
