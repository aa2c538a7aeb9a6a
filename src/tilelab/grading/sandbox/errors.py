"""The one exception of the sandbox."""


class SandboxError(RuntimeError):
    """The sandbox cannot do what is asked; the message says why, and what would make it work."""
