"""JupyterHub's configuration, derived from a `Deployment`: `configure_hub` is all of it."""

import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deployment import Deployment
from gpus import Profiles

import tilelab
from tilelab.grading.exchange.client import URL

#: Seconds that a server or a service may take to start; a laptop on which everything starts at once needs them.
PATIENCE = 180
#: In the environment of everything that a hub under `running.RunningHub` starts: which one it was.
MARK = "TILELAB_HUB"


def configure_hub(c: Any, of: Deployment) -> None:
    """Fill in JupyterHub's configuration.

    Parameters
    ----------
    c : Config
        What ``get_config()`` returned.
    of : Deployment
        The course.
    """
    folder = of.state / "hub"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _places(c, of, folder)
    _people(c, of)
    _servers(c, of)
    _services(c, of, folder)


def _places(c: Any, of: Deployment, folder: Path) -> None:
    c.JupyterHub.bind_url = f"{of.at('proxy')}{of.base_url}"
    c.JupyterHub.hub_bind_url = of.at("hub")
    c.JupyterHub.db_url = database_url(of)
    c.JupyterHub.upgrade_db = True  # where a newer JupyterHub asks for it; a copy of the old one stays beside it
    c.JupyterHub.cookie_secret_file = str(folder / "cookie_secret")
    c.ConfigurableHTTPProxy.api_url = of.at("proxy-api")
    c.ConfigurableHTTPProxy.command = [str(proxy_program())]
    c.ConfigurableHTTPProxy.pid_file = str(folder / "proxy.pid")
    c.ConfigurableHTTPProxy.check_running_interval = 2
    if "CONFIGPROXY_AUTH_TOKEN" in os.environ:  # production: the proxy is a unit of its own and outlives the hub
        c.ConfigurableHTTPProxy.should_start = False
        c.JupyterHub.cleanup_servers = False
        c.JupyterHub.cleanup_proxy = False


def empty_groups(url: str, names: Sequence[str]) -> None:
    """Take everybody out of groups in a hub's database, before the hub starts and puts in who belongs there.

    By itself it only adds: who no longer teaches would go on seeing everybody's work.
    """
    from sqlalchemy import create_engine, inspect, text  # here, for this function's text also runs in a cluster's hub

    engine = create_engine(url)
    if inspect(engine).has_table("user_group_map"):
        with engine.begin() as database:
            for name in names:
                members = "DELETE FROM user_group_map WHERE group_id IN (SELECT id FROM groups WHERE name = :name)"
                database.execute(text(members), {"name": name})
    engine.dispose()


def _people(c: Any, of: Deployment) -> None:
    c.JupyterHub.authenticator_class = of.authenticator
    c.Authenticator.allowed_users = set(of.users)
    c.Authenticator.allow_existing_users = False  # who leaves the roster cannot come back in
    if of.authenticator == "shared-password":
        c.SharedPasswordAuthenticator.user_password = os.environ.get("TILELAB_DEMO_PASSWORD", "")
    for name, settings in of.settings.items():
        c[name].update(settings)
    learners, teachers = of.groups
    c.JupyterHub.load_groups = of.groups
    exchange, formgrader = "access:services!service=exchange", f"access:services!service={of.course}"
    help_out = [f"list:users!group={learners}", f"read:users!group={learners}", f"servers!group={learners}"]
    c.JupyterHub.load_roles = [
        {"name": "server", "scopes": ["users:activity!user", "access:servers!server", exchange]},
        {"name": learners, "groups": [learners], "scopes": [exchange]},
        {"name": teachers, "groups": [teachers], "scopes": [exchange, formgrader]},
        {"name": "instructor", "users": list(of.instructors), "scopes": ["admin-ui", *help_out]},
        {"name": "formgrader", "services": [of.course], "scopes": [exchange]},
    ]
    if of.idle_minutes:
        scopes = ["list:users", "read:users:activity", "read:servers", "delete:servers"]
        c.JupyterHub.load_roles.append({"name": "idle-culler", "services": ["idle-culler"], "scopes": scopes})


def _servers(c: Any, of: Deployment) -> None:
    c.JupyterHub.spawner_class = "simple" if of.accounts == "shared" else "jupyterhub.spawner.LocalProcessSpawner"
    if of.accounts == "shared":
        c.SimpleLocalProcessSpawner.home_dir_template = str(of.state / "home" / "{username}")
    c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
    c.Spawner.ip = "127.0.0.1"
    c.Spawner.default_url = "/lab"
    c.Spawner.start_timeout = c.Spawner.http_timeout = PATIENCE
    c.Spawner.mem_limit = of.memory
    c.Spawner.cpu_limit = of.cpus
    c.Spawner.environment = environment(of)
    profiles = Profiles(of.gpu, of.teachers)
    c.Spawner.options_form = profiles.form
    c.Spawner.options_from_form = profiles.chosen

    def before(spawner: Any) -> None:
        role = "teacher" if spawner.user.name in of.teachers else "learner"
        spawner.environment["JUPYTER_CONFIG_PATH"] = str(of.etc / role)
        gentle = profiles.idle_rules(of.kernel_idle_minutes) if of.kernel_idle_minutes else []
        spawner.args = [*allow_root(of), *(profiles.seat(spawner) or gentle)]

    c.Spawner.pre_spawn_hook = before


def _services(c: Any, of: Deployment, folder: Path) -> None:
    accounts = of.accounts == "own"
    exchange = {
        "name": "exchange",
        "url": of.at("exchange"),
        "api_token": token(folder / "exchange.token"),
        "oauth_no_confirm": True,
        "display": False,
        "timeout": PATIENCE,
    }
    if "CONFIGPROXY_AUTH_TOKEN" not in os.environ:  # else a unit of its own, which a hub's restart does not end
        exchange |= {
            "command": [
                *(sys.executable, "-m", "tilelab.grading.exchange.service"),
                *("--course", of.course, "--root", str(of.exchange)),
            ],
            "environment": environment(of),
            "cwd": "/",
        }
        exchange |= {"user": of.exchange_account} if accounts else {}
    formgrader = {
        "name": of.course,
        "url": of.at("formgrader"),
        "command": [sys.executable, "-m", "jupyterhub.singleuser", *allow_root(of)],
        "cwd": str(of.grader_home),
        "api_token": token(folder / "formgrader.token"),
        "oauth_no_confirm": True,  # else each instructor meets a page that asks whether the hub may tell their name
        "oauth_client_allowed_scopes": ["inherit"],
        "timeout": PATIENCE,  # a hub whose service does not answer in time ends
        "environment": {
            **environment(of),
            "HOME": str(of.grader_home),
            "JUPYTERHUB_DEFAULT_URL": "/formgrader",
            "JUPYTER_CONFIG_PATH": str(of.etc / "grader"),
        },
    }
    formgrader |= {"user": of.grader_account} if accounts else {}
    culler = {
        "name": "idle-culler",
        "command": [sys.executable, "-m", "jupyterhub_idle_culler", f"--timeout={60 * of.idle_minutes}"],
        "environment": environment(of),
        "display": False,
    }
    c.JupyterHub.services = [exchange, formgrader, *([culler] if of.idle_minutes else [])]


def database_url(of: Deployment) -> str:
    """Return where the hub keeps users, servers and tokens."""
    return f"sqlite:///{of.state}/hub/jupyterhub.sqlite"


def allow_root(of: Deployment) -> list[str]:
    """Return the argument that a Jupyter server asks for where root runs it: in a demo with one account for all."""
    return ["--allow-root"] if of.accounts == "shared" and os.getuid() == 0 else []


def environment(of: Deployment) -> dict[str, str]:
    """Return what every process of the course finds in its environment."""
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    found = {"PATH": path, "LANG": "C.UTF-8", URL: of.exchange_url}
    source = Path(tilelab.__file__).parents[1]
    if not source.name.endswith("-packages"):  # not installed, but on PYTHONPATH
        found["PYTHONPATH"] = str(source)
    return found | ({MARK: os.environ[MARK]} if MARK in os.environ else {})


def proxy_program() -> Path:
    """Return the configurable-http-proxy that ``make hub-packages`` installed, else one on the path."""
    own = Path(sys.prefix) / "node" / "node_modules" / ".bin" / "configurable-http-proxy"
    return own if own.exists() else Path("configurable-http-proxy")


def token(file: Path) -> str:
    """Return the secret in a file, which is made where it does not exist; only its owner can read it."""
    if not (file.exists() and file.read_text().strip()):  # a full disk may have left it empty
        file.touch(mode=0o600)
        file.write_text(secrets.token_hex(32))
    return file.read_text().strip()
