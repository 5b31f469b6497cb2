"""Makes the workflow that an order names."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from bridge.errors import LaunchError
from bridge.ports import Order
from flower import Workflow, starter_flow, wake_state
from flower.core.plugins import beside

STARTER = "starter"
DOCUMENTS = {"en": ("brief.md", "goal.md"), "zh": ("需求.md", "目标.md")}


def make_workflow(order: Order, *, run_dir: Path) -> Workflow:
    """Build the workflow of an order: the starter flow, or `module:attr`.

    `attr` is a `Workflow`, or a callable `(request, *, workspace, run_dir) -> Workflow`.

    Raises:
        LaunchError: the flow cannot be found or is not a workflow; says what was looked for.
        ValueError: the starter flow refuses its arguments.
    """
    if order.flow != STARTER:
        return _named(order, run_dir)
    brief, goal = DOCUMENTS[order.language]
    waking = wake_state(order.workspace, run_dir=run_dir, brief_name=brief, goal_name=goal)["waking"]
    timeout = order.options.get("timeout", 1800.0)
    asks = order.options.get("asks")
    return starter_flow(
        _request(order, waking=bool(waking)),
        workspace=order.workspace,
        run_dir=run_dir,
        new=bool(order.options.get("new")) and not order.reopen,
        max_asks=None if asks is None else int(str(asks)),
        timeout_s=None if timeout is None else float(str(timeout)),
        judge_can_run=bool(order.options.get("judge_can_run")),
        lang=order.language,
    )


def plugins_of(order: Order) -> list[Path]:
    """Return the plugin folder beside the module of an order's flow (rulings R25). Call it when the flow is made.

    Raises:
        LaunchError: there is such a folder, but it is no plugin.
    """
    if order.flow == STARTER:
        return []
    module = sys.modules[order.flow.partition(":")[0]]
    try:
        return beside(getattr(module, "__file__", None))
    except ValueError as err:
        raise LaunchError(f"flow {order.flow!r}: {err}") from err


def _request(order: Order, *, waking: bool) -> str:
    """Say what the flow is asked: a continued run gets the person's words, one that died while clarifying all of it."""
    if not order.reopen:
        return order.request
    if waking:
        return order.words
    return f"{order.request}\n\n{order.words}".strip()


def _named(order: Order, run_dir: Path) -> Workflow:
    module_name, _, attr = order.flow.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module_name), attr)
    except (Exception, SystemExit) as err:  # boundary: a module of somebody else is run here
        expected = "expected 'starter' or 'module:attr' that can be imported"
        raise LaunchError(f"flow {order.flow!r}: {type(err).__name__}: {err}; {expected}") from err
    if isinstance(found, Workflow):
        return found
    words = order.words if order.reopen and order.words else order.request
    made = found(words, workspace=order.workspace, run_dir=run_dir) if callable(found) else found
    if not isinstance(made, Workflow):
        raise LaunchError(f"flow {order.flow!r} gave {type(made).__name__}, expected a flower Workflow")
    return made
