"""What ``jupyterhub -f`` reads; ``$TILELAB_COURSE`` names the course.toml, the repository's own unless set."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from deployment import read_deployment  # noqa: E402  (from the folder that was just put on the path)
from hub_config import configure_hub  # noqa: E402

configure_hub(
    get_config(),  # noqa: F821  (JupyterHub defines it)
    read_deployment(Path(os.environ.get("TILELAB_COURSE", HERE.parent / "course.toml"))),
)
