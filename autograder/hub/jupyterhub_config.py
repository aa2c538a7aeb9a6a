"""What ``jupyterhub -f`` reads; ``$TILELAB_COURSE`` names the course.toml, the repository's own unless set."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from authenticators import check_authenticator  # noqa: E402  (from the folder that was just put on the path)
from deployment import read_deployment  # noqa: E402
from hub_config import MARK, configure_hub, database_url, empty_groups  # noqa: E402
from only_one import hold  # noqa: E402

from tilelab.grading.errors import GradingError  # noqa: E402

try:
    of = read_deployment(Path(os.environ.get("TILELAB_COURSE", HERE.parent / "course.toml")))
    check_authenticator(of)
    hold(of, os.environ.get(MARK, ""))
except GradingError as error:
    sys.exit(str(error))
empty_groups(database_url(of), list(of.groups))
configure_hub(get_config(), of)  # noqa: F821  (JupyterHub defines it)
