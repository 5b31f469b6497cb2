"""A step that asks until the requirement is clear, and freezes it in a file (behaviour 20)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from flower import texts
from flower.core.agent import AgentSpec
from flower.core.brief import Brief
from flower.core.human import HumanChannel
from flower.core.roles import clarify
from flower.core.runtime import StepResult
from flower.texts.workflow import ZH
from flower.workflow.base import Ctx, Step

BRIEF_KEY = "_brief"
MISSING_KEY = "_brief_missing"
CLARIFY_RESUME = ZH.clarify_resume


def clarify_step(
    channel: HumanChannel,
    *,
    brief_path: str | Path,
    prompt: str | Callable[[Ctx], str],
    name: str = "确认需求",
    spec: AgentSpec | None = None,
    instructions: str = "",
    always_ask: bool = False,
    on_fail: str = "stop",
    retries: int = 0,
    **spec_kw: Any,
) -> Step:
    """A step whose result is a complete brief, in `brief_path` and in ctx.

    The same channel must be given to the workflow, and `brief_path` should lie in the notes of the workbench that the
    agents are shown. `spec_kw` goes to the role `clarify`, unless a `spec` is given. Later steps never carry the
    interview: it was never in their context.
    """

    def take(brief: Brief, ctx: Ctx) -> None:
        ctx[BRIEF_KEY] = brief
        ctx[name] = brief.prompt_block()
        ctx.pop(MISSING_KEY, None)

    def needed(ctx: Ctx) -> bool:
        frozen = None if always_ask else Brief.load(brief_path)
        if frozen is None or not frozen.complete():
            return True
        take(frozen, ctx)  # a skipped step puts nothing into ctx by itself
        return False

    def freeze(result: StepResult, ctx: Ctx) -> bool:
        brief = Brief.parse(result.text)
        if not brief.complete():
            ctx[MISSING_KEY] = brief.missing()
            return False
        brief.write(brief_path)  # and takes up what people added to the file meanwhile (D18)
        take(brief, ctx)
        return True

    return Step(
        name,
        spec or clarify(name, channel, instructions=instructions, **spec_kw),
        prompt,
        retries=retries,
        gate=freeze,
        on_fail=on_fail,
        when=needed,
        resume_prompt=texts.current().workflow.clarify_resume,
        reduce=lambda _result, ctx: str(ctx[BRIEF_KEY].prompt_block()),
    )
