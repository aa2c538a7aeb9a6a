"""Options of the whole test run."""


def pytest_addoption(parser):
    parser.addoption(
        "--sweep", type=int, default=5_000, metavar="N", help="random pairs in the sweep of compositions (5000)"
    )
