"""How people log in: which kinds work here, and what each of them can be told."""

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from deployment import Deployment
from jupyterhub.auth import Authenticator

from tilelab.grading.errors import GradingError
from tilelab.grading.policy import check_keys, meant

#: What ``pip install oauthenticator`` adds; each also as ``local-…``, which makes accounts.
SINGLE_SIGN_ON = (
    *("auth0", "azuread", "bitbucket", "cilogon", "generic-oauth", "github", "gitlab", "globus", "google"),
    *("mediawiki", "openshift"),
)


def check_authenticator(of: Deployment) -> type[Authenticator]:
    """Return the class that lets people in.

    Raises
    ------
    GradingError
        Its kind is not known or not installed, or a setting is not one of its own: the message quotes it.
    """
    authenticator = _class(of)
    own = {one.__name__: one for one in authenticator.mro() if issubclass(one, Authenticator)}
    check_keys(of.file, "authenticator", of.settings, own)
    for name, settings in of.settings.items():
        check_keys(of.file, f"authenticator.{name}", settings, own[name].class_trait_names(config=True))
    return authenticator


def _class(of: Deployment) -> type[Authenticator]:
    said, kinds = of.authenticator, _kinds()
    try:
        if said.lower() in kinds:
            found = kinds[said.lower()].load()
        elif "." in said:
            module, _, name = said.rpartition(".")
            found = getattr(import_module(module), name)
        else:
            raise GradingError(f"{of.file.name}: authenticator.kind = {said!r} {_unknown(said, kinds)}")
    except (ImportError, AttributeError, ValueError) as error:
        raise GradingError(f"{of.file.name}: authenticator.kind = {said!r} cannot be loaded: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Authenticator)):
        raise GradingError(f"{of.file.name}: authenticator.kind = {said!r} is no class of JupyterHub's Authenticator")
    return found


def _kinds() -> Mapping[str, EntryPoint]:
    return {kind.name: kind for kind in entry_points(group="jupyterhub.authenticators")}


def _unknown(said: str, kinds: Mapping[str, Any]) -> str:
    if said.lower().removeprefix("local-") in SINGLE_SIGN_ON:
        return "comes with oauthenticator, which is not installed here: run  .venv/bin/pip install oauthenticator"
    here = sorted(set(kinds) - {"default"})
    more = [kind for kind in SINGLE_SIGN_ON if kind not in kinds]
    return (
        f"is not known. Here {', '.join(here)} work, and a class of yours by its path, such as "
        f"'mypackage.MyAuthenticator'; with oauthenticator installed {', '.join(more)} do{meant(said, [*here, *more])}"
    )
