"""Steps, workflows, and the ones that come with the package."""

from flower.workflow.base import Ctx, Step, Workflow
from flower.workflow.clarify import BRIEF_KEY, MISSING_KEY, clarify_step

__all__ = ["BRIEF_KEY", "MISSING_KEY", "Ctx", "Step", "Workflow", "clarify_step"]
