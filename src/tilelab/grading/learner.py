"""Who the learner is, and which course it is, where learners have numbers of their own.

What is handed out is the same notebook for everybody. Its locked first cell calls ``given("exercise_1", "spring")``:
the course's key stands in it, from ``course.toml``. Numbers follow from the key and the learner's id
(`tilelab.grading.problems.given_to`), and both sides know both:

- the learner's side takes the id from the environment: ``$TILELAB_LEARNER``, which a learner sets by
  ``%env TILELAB_LEARNER=ada``, else the user of a JupyterHub;
- the judge takes it from the gradebook and the key from the locked cell as it was released, and trusts nothing else. It
  tells the notebook that it runs who its author is, so that the notebook sees the numbers that its author saw.

An answer says whose numbers it is about. Where that is somebody else's, the report explains it.
"""

import os
import re
from collections.abc import Iterable

from tilelab.grading.errors import GradingError

VARIABLE = "TILELAB_LEARNER"
#: Set on a JupyterHub, in this order; ``jovyan`` is what an image calls everybody.
OF_A_HUB = ("JUPYTERHUB_USER", "NB_USER")
NOBODY = "jovyan"
#: The call that says what a notebook is about, without a key or with one.
CALL = re.compile(r'\bgiven\("(?P<problem>\w+)"(?:, "(?P<key>[^"]*)")?\)')


def me() -> str:
    """Return the learner's id, or ``""`` where nothing says who it is."""
    for variable in (VARIABLE, *OF_A_HUB):
        if (found := os.environ.get(variable, "").strip()) and found != NOBODY:
            return found
    return ""


def telling(learner: str) -> str:
    """Return the code that tells a kernel who the learner is, unless the notebook says so itself."""
    return f"import os\nos.environ[{OF_A_HUB[0]!r}] = {learner!r}"


def check_key(key: object) -> str:
    """Return a course's key, or raise `GradingError` for what cannot stand in a notebook's cell."""
    if not isinstance(key, str) or not key.isprintable() or len(key) > 60 or set(key) & set('"\\'):
        raise GradingError(f"a key is a short text without quotes, not {key!r:.80}")
    return key


def with_key(source: str, key: str) -> str:
    """Return the source of a code cell with the course's key in its call of ``given``, where it has one."""
    return CALL.sub(lambda call: f'given("{call["problem"]}", "{key}")', source)


def key_in(sources: Iterable[str]) -> str:
    """Return the course's key that cells were handed out with, or ``""``."""
    for source in sources:
        if (found := CALL.search(source)) and found["key"]:
            return found["key"]
    return ""
