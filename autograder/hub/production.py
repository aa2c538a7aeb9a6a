"""A course on one server: systemd units, the reverse proxy's site and the accounts, derived from ``course.toml``.

    python autograder/hub/production.py --course /etc/tilelab/course.toml --to /etc/tilelab/server

The proxy and the exchange are units of their own: a hub that restarts, for an upgrade say, ends nobody's work.
"""

import argparse
import secrets
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from authenticators import check_authenticator  # noqa: E402  (from the folder that was just put on the path)
from deployment import Deployment, read_deployment, say  # noqa: E402
from hub_config import environment, proxy_program, token  # noqa: E402

from tilelab.grading.errors import GradingError  # noqa: E402

#: Kinds of logging in that let anybody be anybody.
DEMO = ("dummy", "shared-password")
#: What keeps a service to itself.
WALLS = {
    "NoNewPrivileges": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "ProtectSystem": "strict",
    "ProtectKernelTunables": "yes",
    "ProtectControlGroups": "yes",
    "RestrictSUIDSGID": "yes",
}
SITE = """\
# {url}: TLS here, everything else on loopback.
map $http_upgrade ${variable} {{
    default upgrade;
    ''      close;
}}
server {{
    listen {http};
    server_name {host};
    return 301 https://$host$request_uri;
}}
server {{
    listen {https} ssl;
    server_name {host};
    ssl_certificate     {certificate};
    ssl_certificate_key {key};
    ssl_protocols       TLSv1.2 TLSv1.3;
    add_header Strict-Transport-Security "max-age=31536000" always;
    client_max_body_size 200m;
    location / {{
        proxy_pass {proxy};
        proxy_http_version 1.1;
        proxy_set_header Host $http_host;
        proxy_set_header X-Real-IP $remote_addr;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto https;
        proxy_set_header X-Scheme https;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection ${variable};
        proxy_buffering off;
        proxy_read_timeout 86400;
    }}
}}
"""


@dataclass(frozen=True)
class Unit:
    """One systemd service: what it runs, as whom, with which environment."""

    name: str
    about: str
    command: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    after: tuple[str, ...] = ("network.target",)
    once: bool = False

    @property
    def text(self) -> str:
        """The unit's file."""
        lines = ["[Unit]", f"Description={self.about}", f"After={' '.join(self.after)}"]
        lines += [f"Wants={' '.join(wanted)}"] if (wanted := [a for a in self.after if a != "network.target"]) else []
        lines += ["", "[Service]", f"Type={'oneshot' if self.once else 'simple'}"]
        lines += [f"ExecStart={' '.join(self.command)}"]
        lines += [f'Environment="{name}={value}"' for name, value in self.variables.items()]
        lines += [f"EnvironmentFile={self.secrets}"] if self.secrets else []
        lines += [] if self.once else ["Restart=always", "RestartSec=2"]
        lines += [f"{name}={value}" for name, value in self.settings.items()]
        lines += [] if self.once else ["", "[Install]", "WantedBy=multi-user.target"]
        return "\n".join(lines) + "\n"


def units(of: Deployment, folder: Path) -> list[Unit]:
    """Return the services of a course; their secrets lie in a folder."""
    proxy = Unit(
        f"{of.course}-proxy",
        f"{of.title}: the proxy in front of hub and servers",
        (
            str(proxy_program()),
            *("--ip", "127.0.0.1", "--port", str(of.port)),
            *("--api-ip", "127.0.0.1", "--api-port", of.at("proxy-api").rsplit(":", 1)[1]),
            *("--error-target", f"{of.at('hub')}{of.base_url}hub/error"),
        ),
        {"PATH": "/usr/local/bin:/usr/bin:/bin"},
        folder / "proxy.env",
        {"DynamicUser": "yes", **WALLS},
    )
    exchange = Unit(
        f"{of.course}-exchange",
        f"{of.title}: the exchange, which alone can read what was handed in",
        (
            *(sys.executable, "-m", "tilelab.grading.exchange.service"),
            *("--course", of.course, "--root", str(of.exchange)),
        ),
        {
            **environment(of),
            "JUPYTERHUB_SERVICE_NAME": "exchange",
            "JUPYTERHUB_SERVICE_URL": of.at("exchange"),
            "JUPYTERHUB_SERVICE_PREFIX": f"{of.base_url}services/exchange/",
            "JUPYTERHUB_API_URL": f"{of.at('hub')}{of.base_url}hub/api",
            "JUPYTERHUB_BASE_URL": of.base_url,
        },
        folder / "exchange.env",
        {"User": of.exchange_account, **WALLS, "ReadWritePaths": str(of.exchange), "LimitNOFILE": "65536"},
    )
    hub = Unit(
        f"{of.course}-hub",
        f"{of.title}: JupyterHub",
        (sys.executable, "-m", "jupyterhub", "-f", str(HERE / "jupyterhub_config.py")),
        {**environment(of), "TILELAB_COURSE": str(of.file)},
        folder / "proxy.env",
        # Learners' servers are its children and outlive it: the next hub finds them again.
        {"KillMode": "process", "WorkingDirectory": str(of.state), "LimitNOFILE": "65536"},
        ("network.target", f"{of.course}-proxy.service", f"{of.course}-exchange.service"),
    )
    backup = Unit(
        f"{of.course}-backup",
        f"{of.title}: a snapshot of gradebook and exchange",
        (
            sys.executable,
            str(HERE / "backup.py"),
            "save",
            "--course",
            str(of.file),
            "--to",
            f"/var/backups/{of.course}",
        ),
        environment(of),
        once=True,
    )
    return [proxy, exchange, hub, backup]


TIMER = """\
[Unit]
Description=A snapshot of gradebook and exchange every night

[Timer]
OnCalendar=*-*-* 03:15:00
Persistent=true

[Install]
WantedBy=timers.target
"""


def site(of: Deployment, certificate: str = "", key: str = "", https: int | str = 443, http: int | str = 80) -> str:
    """Return nginx's site for the course."""
    host = urlsplit(of.url).hostname or "localhost"
    folder = f"/etc/letsencrypt/live/{host}"
    return SITE.format(
        url=of.url,
        variable=f"upgrade_{of.course.replace('-', '_')}",  # of its own, or nginx refuses a second course
        host=host,
        proxy=of.at("proxy"),
        certificate=certificate or f"{folder}/fullchain.pem",
        key=key or f"{folder}/privkey.pem",
        https=https,
        http=http,
    )


def make_accounts(of: Deployment) -> str:
    """Return the commands that make the accounts which are missing; people's only where PAM lets them in."""
    lines = ["#!/bin/sh", "# Accounts of the course. Those that exist are left alone.", "set -eu"]
    for name, home in ((of.grader_account, of.grader_home), (of.exchange_account, of.exchange)):
        lines.append(f"id {name} >/dev/null 2>&1 || useradd --system --user-group --home-dir {home} {name}")
    for name in of.users:
        lines.append(f"id {name} >/dev/null 2>&1 || useradd --create-home --shell /bin/bash {name}")
    lines.append("# homes are their owner's alone")
    lines += [f"chmod 700 ~{name}" for name in of.users]
    return "\n".join(lines) + "\n"


def check_server(of: Deployment) -> None:
    """Raise `GradingError` where a course is set up as a demo, or its people cannot log in."""
    check_authenticator(of)
    if of.authenticator.lower() in DEMO:
        raise GradingError(
            f"{of.file.name}: authenticator.kind = {of.authenticator!r} is for a demo, where everybody can log in as "
            "anybody: say 'pam' for the machine's own passwords, or 'github' and the like for single sign-on"
        )
    if of.accounts != "own":
        raise GradingError(
            f"{of.file.name}: hub.accounts = {of.accounts!r} is for a demo, where all share one account: say 'own'"
        )
    if not of.url.startswith("https://"):
        raise GradingError(f"{of.file.name}: hub.url = {of.url!r}, write one such as https://hub.example.org")


def write_server(of: Deployment, folder: Path) -> list[Path]:
    """Write everything below a folder, secrets readable by root alone, and return the files.

    Secrets that are there already are kept, so that it can be run again at any time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{unit.name}.service": unit.text for unit in units(of, folder)}
    files |= {f"{of.course}-backup.timer": TIMER, "nginx.conf": site(of), "accounts.sh": make_accounts(of)}
    written = []
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
        written.append(folder / name)
    hub = of.state / "hub"
    hub.mkdir(mode=0o700, parents=True, exist_ok=True)
    of_the_exchange = token(hub / "exchange.token")
    for name, line in (
        ("proxy.env", f"CONFIGPROXY_AUTH_TOKEN={secrets.token_hex(32)}\n"),
        ("exchange.env", f"JUPYTERHUB_API_TOKEN={of_the_exchange}\n"),
    ):
        if not (folder / name).exists() or not (folder / name).read_text():
            (folder / name).touch(mode=0o600)
            (folder / name).write_text(line)
        written.append(folder / name)
    return written


def main() -> int:
    """Write the files and say what to do with them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--course", type=Path, required=True, help="the course.toml")
    parser.add_argument("--to", type=Path, required=True, help="the folder to write to")
    asked = parser.parse_args()

    def work() -> Iterator[Path]:
        of = read_deployment(asked.course.resolve())
        check_server(of)
        yield from write_server(of, asked.to.resolve())

    return say(work)


if __name__ == "__main__":
    sys.exit(main())
