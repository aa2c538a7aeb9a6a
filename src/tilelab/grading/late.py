"""nbgrader's late penalties by the course's own rule."""

from pathlib import Path

from nbgrader.plugins import BasePlugin
from traitlets import Unicode

from tilelab.grading.policy import read_policy


class PolicyPenalty(BasePlugin):
    """Takes the share that ``course.toml`` says from what a late notebook earned."""

    policy = Unicode(help="The course's course.toml.").tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """Return the points that one notebook loses; ``None`` where lateness costs nothing."""
        share = read_policy(Path(self.policy)).late.share(total_seconds_late)
        return round(score * share, 2) if share else None
