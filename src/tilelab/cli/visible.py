"""Text that others wrote, as a terminal may show it."""

import re

#: Characters that a terminal obeys (all controls but the line feed), that turn the direction of writing, that break a
#: line where none is expected, and halves of characters, which cannot be written at all.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Write characters that a terminal would obey as JSON does: ``\u001b``. Inside JSON they stay what they were."""
    return OBEYED.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
