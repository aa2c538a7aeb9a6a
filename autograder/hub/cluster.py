"""The course on Kubernetes: values for Zero to JupyterHub, and what runs beside it, derived from ``course.toml``.

    python autograder/hub/cluster.py --course course.toml --to _build/kubernetes

``values.yaml`` is for the chart jupyterhub/jupyterhub; ``exchange.yaml`` holds the exchange, formgrader and their disk.
Secrets are named, never written: ``make-secrets.sh`` makes them in the cluster.
"""

import argparse
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from deployment import Deployment, read_deployment, say  # noqa: E402  (from the folder that was just put on the path)
from gpus import Profiles  # noqa: E402
from hub_config import empty_groups  # noqa: E402

#: Names in the cluster, and where things lie in the image (see the Dockerfile).
EXCHANGE, SECRET = "tilelab-exchange", "tilelab-tokens"
PYTHON = "/opt/tilelab/.venv/bin/python"
#: The folder of everything that is kept, on the pod's disk.
STATE = "/srv/tilelab"
PORT = 8080
#: The number of the image's ordinary user.
USER = 1000


def values(of: Deployment) -> dict[str, Any]:
    """Return the chart's values."""
    learners, teachers = of.groups
    exchange, formgrader = "access:services!service=exchange", f"access:services!service={of.course}"
    image, _, tag = of.kubernetes.image.rpartition(":")
    inside = f"http://proxy-public{of.base_url}services/exchange"
    gentle = Profiles.idle_rules(of.kernel_idle_minutes) if of.kernel_idle_minutes else []
    found: dict[str, Any] = {
        "hub": {
            "baseUrl": of.base_url,
            "config": {
                "JupyterHub": {"authenticator_class": of.authenticator},
                "Authenticator": {"allowed_users": list(of.users), "allow_existing_users": False},
                **{name: dict(settings) for name, settings in of.settings.items()},
            },
            "loadRoles": {
                "server": {"scopes": ["users:activity!user", "access:servers!server", exchange]},
                learners: {"groups": [learners], "scopes": [exchange]},
                teachers: {"groups": [teachers], "scopes": [exchange, formgrader]},
                "formgrader": {"services": [of.course], "scopes": [exchange]},
            },
            "services": {
                name: {
                    "url": f"http://{EXCHANGE}:{PORT + number}",
                    "oauth_no_confirm": True,
                    "display": name != "exchange",
                }
                for number, name in enumerate(("exchange", of.course))
            },
            "extraConfig": {"groups": _groups(of), "roles": _hook(of)},
            "networkPolicy": {"ingress": [{"from": [{"podSelector": {"matchLabels": {"app": EXCHANGE}}}]}]},
        },
        "singleuser": {
            "image": {"name": image, "tag": tag},
            "cmd": [PYTHON, "-m", "jupyterhub.singleuser", *gentle],
            "defaultUrl": "/lab",
            "memory": {"limit": of.memory, "guarantee": of.memory // 4},
            "cpu": {"limit": of.cpus, "guarantee": 0.1},
            "storage": {"capacity": of.kubernetes.storage},
            "extraEnv": {"TILELAB_EXCHANGE_URL": inside, "CUDA_VISIBLE_DEVICES": ""},
            "networkPolicy": {"egress": [{"to": [{"podSelector": {"matchLabels": {"component": "proxy"}}}]}]},
        },
        "cull": {"enabled": bool(of.idle_minutes), "timeout": 60 * of.idle_minutes or 3600},
        "ingress": {
            "enabled": True,
            "hosts": [of.kubernetes.host],
            "tls": [{"hosts": [of.kubernetes.host], "secretName": "tilelab-tls"}],
        },
        "proxy": {"service": {"type": "ClusterIP"}},
    }
    if of.gpu.devices:
        found["singleuser"]["profileList"] = _profiles(of)
    return found


def _profiles(of: Deployment) -> list[dict[str, Any]]:
    """Return the two servers that a learner chooses from. The cluster's scheduler counts the seats."""
    rules = Profiles.idle_rules(of.gpu.kernel_idle_minutes, of.gpu.idle_minutes)
    return [
        {"display_name": "Without a GPU", "description": "All exercises work in the simulator.", "default": True},
        {
            "display_name": "With a GPU",
            "description": f"Kernels that are idle for {of.gpu.kernel_idle_minutes} minutes end and give it back.",
            "kubespawner_override": {
                "cmd": [PYTHON, "-m", "jupyterhub.singleuser", *rules],
                "extra_resource_limits": {of.kubernetes.gpu_resource: "1"},
                "environment": {"CUDA_VISIBLE_DEVICES": "all"},
            },
        },
    ]


def _groups(of: Deployment) -> str:
    return (
        f"from collections.abc import Sequence\n{inspect.getsource(empty_groups)}\n"
        f"c.JupyterHub.load_groups = {json.dumps(of.groups)}\n"
        "empty_groups(c.JupyterHub.db_url, list(c.JupyterHub.load_groups))\n"
    )


def _hook(of: Deployment) -> str:
    """Return the hub's code that tells learners from teachers, as `hub_config` does on one server."""
    return (
        f"TEACHERS = {list(of.teachers)!r}\n"
        "def before(spawner):\n"
        '    role = "teacher" if spawner.user.name in TEACHERS else "learner"\n'
        '    spawner.environment["JUPYTER_CONFIG_PATH"] = f"/opt/tilelab/etc/{role}"\n'
        "c.KubeSpawner.pre_spawn_hook = before\n"
        "import os\n"
        "for service in c.JupyterHub.services:\n"
        '    if service["name"] in ("exchange", ' + repr(of.course) + "):\n"
        '        service["api_token"] = os.environ["TILELAB_" + '
        '("EXCHANGE" if service["name"] == "exchange" else "FORMGRADER")]\n'
    )


def beside(of: Deployment) -> list[dict[str, Any]]:
    """Return what runs beside the chart: the exchange and formgrader in one pod, on one disk."""
    hub = f"http://hub:8081{of.base_url}hub/api"
    common = {"JUPYTERHUB_API_URL": hub, "JUPYTERHUB_BASE_URL": of.base_url}
    exchange = _container(
        "exchange",
        of,
        [PYTHON, "-m", "tilelab.grading.exchange.service", "--course", of.course, "--root", f"{STATE}/exchange"],
        common
        | {
            "JUPYTERHUB_SERVICE_NAME": "exchange",
            "JUPYTERHUB_SERVICE_URL": f"http://0.0.0.0:{PORT}",
            "JUPYTERHUB_SERVICE_PREFIX": f"{of.base_url}services/exchange/",
        },
        "EXCHANGE",
        PORT,
    )
    formgrader = _container(
        "formgrader",
        of,
        [PYTHON, "-m", "jupyterhub.singleuser", "--ip=0.0.0.0", f"--port={PORT + 1}"],
        common
        | {
            "JUPYTERHUB_SERVICE_NAME": of.course,
            "JUPYTERHUB_SERVICE_URL": f"http://0.0.0.0:{PORT + 1}",
            "JUPYTERHUB_SERVICE_PREFIX": f"{of.base_url}services/{of.course}/",
            "JUPYTERHUB_CLIENT_ID": f"service-{of.course}",
            "JUPYTERHUB_OAUTH_ACCESS_SCOPES": json.dumps([f"access:services!service={of.course}"]),
            "JUPYTERHUB_OAUTH_SCOPES": json.dumps([f"access:services!service={of.course}"]),
            "JUPYTERHUB_DEFAULT_URL": "/formgrader",
            "JUPYTER_CONFIG_PATH": f"{STATE}/etc/grader",
            "TILELAB_EXCHANGE_URL": f"http://localhost:{PORT}{of.base_url}services/exchange",
            "HOME": f"{STATE}/grader",
        },
        "FORMGRADER",
        PORT + 1,
    )
    for container in (exchange, formgrader):
        container["volumeMounts"] = [{"name": "state", "mountPath": STATE}]
    # The judge's sandbox is made of user namespaces, which the default profile of some runtimes forbids.
    formgrader["securityContext"]["seccompProfile"] = {"type": "Unconfined"}
    volumes = [{"name": "state", "persistentVolumeClaim": {"claimName": "tilelab-state"}}]
    labels = {"app": EXCHANGE}
    ports = [{"name": name, "port": PORT + number} for number, name in enumerate(("exchange", "formgrader"))]
    return [
        _claim("tilelab-state", of.kubernetes.storage),
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": EXCHANGE, "labels": labels},
            "spec": {
                "replicas": 1,
                "strategy": {"type": "Recreate"},  # one writer
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": {**labels, "hub.jupyter.org/network-access-hub": "true"}},
                    "spec": {
                        "automountServiceAccountToken": False,
                        "securityContext": {"runAsUser": USER, "runAsGroup": USER, "fsGroup": USER},
                        "containers": [exchange, formgrader],
                        "volumes": volumes,
                    },
                },
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": EXCHANGE},
            "spec": {"selector": labels, "ports": ports},
        },
    ]


def _container(
    name: str, of: Deployment, command: list[str], variables: dict[str, str], key: str, port: int
) -> dict[str, Any]:
    token = {"valueFrom": {"secretKeyRef": {"name": SECRET, "key": key}}}
    return {
        "name": name,
        "image": grader_image(of),
        "command": command,
        "env": [
            {"name": "JUPYTERHUB_API_TOKEN", **token},
            *({"name": one, "value": value} for one, value in variables.items()),
        ],
        "ports": [{"containerPort": port}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"memory": "512Mi", "cpu": "100m"}, "limits": {"memory": str(of.memory)}},
    }


def grader_image(of: Deployment) -> str:
    """Return the image that holds masters and checks, which learners' servers do not."""
    name, _, tag = of.kubernetes.image.rpartition(":")
    return f"{name}-grader:{tag}"


def _claim(name: str, size: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
    }


MAKE_SECRETS = f"""\
#!/bin/sh
# Makes the two tokens in the cluster, once; the hub and the services read them from there.
set -eu
kubectl get secret {SECRET} >/dev/null 2>&1 || kubectl create secret generic {SECRET} \\
    --from-literal=EXCHANGE="$(openssl rand -hex 32)" --from-literal=FORMGRADER="$(openssl rand -hex 32)"
"""


def write_kubernetes(of: Deployment, folder: Path) -> list[Path]:
    """Write everything below a folder and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    chart = values(of)
    chart["hub"]["extraEnv"] = {
        f"TILELAB_{key}": {"name": f"TILELAB_{key}", "valueFrom": {"secretKeyRef": {"name": SECRET, "key": key}}}
        for key in ("EXCHANGE", "FORMGRADER")
    }
    files = {
        "values.yaml": yaml.safe_dump(chart, sort_keys=False),
        "exchange.yaml": yaml.safe_dump_all(beside(of), sort_keys=False),
        "make-secrets.sh": MAKE_SECRETS,
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in files]


def main() -> int:
    """Write the files and name them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--course", type=Path, default=HERE.parent / "course.toml", help="the course.toml")
    parser.add_argument("--to", type=Path, required=True, help="the folder to write to")
    asked = parser.parse_args()
    return say(lambda: write_kubernetes(read_deployment(asked.course.resolve()), asked.to))


if __name__ == "__main__":
    sys.exit(main())
