"""Is the sandbox on? Asked from inside, before anything of a learner's runs."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tilelab.grading.sandbox import probe
from tilelab.grading.sandbox.errors import SandboxError
from tilelab.grading.sandbox.limits import Limits
from tilelab.grading.sandbox.provisioner import choose
from tilelab.grading.sandbox.runner import run

START_SECONDS = 60


def holes(found: dict[str, Any], grader_variables: Iterable[str] = ()) -> list[str]:
    """Return what is wrong with a sandbox, given what the probe found inside; nothing, if it holds.

    Parameters
    ----------
    found : dict
        The probe's findings.
    grader_variables : iterable of str
        Names of environment variables that must not be inside.
    """
    leaked = sorted(set(grader_variables) & set(found["variables"]))
    answers = [
        (found["processes"] > 20, f"{found['processes']} processes can be seen"),
        (found["user"] == 0, "the user is root"),
        (found["capabilities"] != 0, f"capabilities {found['capabilities']:#x} are held"),
        (not found["no_new_privileges"], "programs may gain privileges"),
        (not found["filtered"], "system calls are not filtered"),
        (found["interfaces"] not in ([], ["lo"]), f"network interfaces {', '.join(found['interfaces'])}"),
        (found["network"] == "done", "packets can leave by the network"),
        (found["vsock"] == "done", "sockets to the host of a virtual machine can be opened"),
        (found["user_namespace"] == "done", "a namespace can be made inside"),
        (bool(found["devices"]), f"devices {', '.join(found['devices'])}"),
        (bool(found["writable"]), f"files can be made in {', '.join(found['writable'])}"),
        (bool(found["in_sight"]), f"{', '.join(found['in_sight'])} can be seen"),
        (bool(leaked), f"the grader's variables {', '.join(leaked)} are set"),
    ]
    return [words for wrong, words in answers if wrong]


def require(hidden: Iterable[Path | str] = (), show: Iterable[str] = ()) -> None:
    """Return if the sandbox is on for programs and for kernels; raise otherwise.

    Parameters
    ----------
    hidden : iterable of path
        What must not be seen from inside: the course, the gradebook, the exchange.
    show : iterable of str
        Further paths that will be shown inside.

    Raises
    ------
    SandboxError
        Naming every hole that was found, or why the sandbox cannot be built at all.
    """
    # A variable of the grader's that everyone sets says nothing; one planted here says that the environment leaks.
    planted = "TILELAB_PREFLIGHT"
    os.environ[planted] = "1"
    try:
        paths = [str(path) for path in hidden]
        found = {"programs": in_a_program(paths, show), "kernels": in_a_kernel(paths, show)}
    finally:
        del os.environ[planted]
    wrong = [f"for {kind}: {hole}" for kind, what in found.items() for hole in holes(what, [planted])]
    if wrong:
        raise SandboxError("the sandbox has holes, so nothing is graded. " + "; ".join(wrong))


def in_a_program(hidden: list[str], show: Iterable[str] = ()) -> dict[str, Any]:
    """Run the probe as a program inside and return its findings.

    Raises
    ------
    SandboxError
        Where the sandbox cannot be built, or the probe does not answer.
    """
    source = Path(probe.__file__).read_text()
    try:
        ended = run(
            [sys.executable, "-", *hidden], limits=Limits(seconds=START_SECONDS), show=list(show), stdin=source.encode()
        )
    except SandboxError as error:
        raise SandboxError(f"{error}{advice()}") from error
    if not ended.ok:
        words = ended.stderr.decode(errors="replace").strip()[-1000:]
        raise SandboxError(f"the probe inside the sandbox did not answer ({ended.ended}, {ended.returncode}): {words}")
    findings: dict[str, Any] = json.loads(ended.stdout)
    return findings


def in_a_kernel(hidden: list[str], show: Iterable[str] = ()) -> dict[str, Any]:
    """Run the probe in a kernel, started as the grader starts them, and return its findings.

    Raises
    ------
    SandboxError
        Where the kernel does not answer.
    """
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    choose(manager, show=list(show))
    said: list[str] = []
    findings: list[str] = []

    def listen(message: dict[str, Any]) -> None:
        content = message["content"]
        text = content.get("text") or "\n".join(content.get("traceback", []))
        # Newer Pythons warn of a fork beside threads, on the other stream.
        (findings if content.get("name") == "stdout" else said).append(text)

    source = Path(probe.__file__).read_text().partition('if __name__ == "__main__"')[0]
    manager.start_kernel(cwd=str(Path(probe.__file__).parent))
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=START_SECONDS)
        code = f"{source}\nprint(json.dumps(look_around({hidden!r})))"
        client.execute_interactive(code, timeout=START_SECONDS, output_hook=listen)
        found: dict[str, Any] = json.loads("".join(findings))
    except (RuntimeError, TimeoutError, ValueError) as error:
        raise SandboxError(
            f"a kernel inside the sandbox does not answer: {error}. It said: {''.join([*findings, *said])[-1000:]}"
            f"{_whose(manager.kernel_spec.argv[0])}"
        ) from error
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return found


def _whose(program: str) -> str:
    """Say so where a kernel belongs to another Python: what that needs may not be there inside."""
    if not os.path.isabs(program) or program == sys.executable:
        return ""
    return (
        f". The kernel 'python3' here is that of {program}, and {sys.executable} grades: "
        "take that kernel away; `jupyter kernelspec list` says where it is"
    )


def advice() -> str:
    """Say what usually stops bubblewrap on this machine, and how to allow it."""
    restricted = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    allowed = Path("/proc/sys/user/max_user_namespaces")
    if os.getuid() and restricted.exists() and restricted.read_text().strip() == "1":
        return (
            ". This system (Ubuntu 24.04 and later) keeps user namespaces from ordinary programs: "
            "grade as root, or set sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        )
    if os.getuid() and allowed.exists() and allowed.read_text().strip() == "0":
        return (
            ". User namespaces are switched off: set sysctl user.max_user_namespaces to more than 0, or grade as root"
        )
    return ""
