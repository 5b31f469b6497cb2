"""The long story as the scripted model plays it: the lines, and the tokens that each of them reports."""

from __future__ import annotations

from typing import Any

from tests.stories.long.words import Words

ASK, INBOX = "mcp__human__ask", "mcp__human__inbox"
LOOP = "for i in $(seq 1 300); do [ -e {go} ] && break; sleep 0.1; done; echo looked"
"""Waits for a file; the program refuses a bare sleep."""

Line = dict[str, Any]


def used(context: int, output: int) -> dict[str, int]:
    """Tokens of an answer: ten fresh ones, the rest of the context from the cache."""
    return {"input": 10, "cache_read": context - 10, "cache_write": 0, "output": output}


def ask(mark: str, words: str, *options: str) -> Line:
    return {"call": {ASK: {"question": f"[{mark}] {words}", "options": list(options)}}}


def agent(task: str) -> dict[str, Any]:
    return {"Agent": {"description": task, "subagent_type": "coder", "prompt": f"[TASK-{task}] make {task}.txt"}}


def lost(times: int = 3) -> Line:
    """The connection breaks before the first byte, as often as the program tries."""
    return {"drop": {"after": 0, "times": times}}


def story(words: Words, go: str) -> dict[str, Any]:
    """Return the story.

    Args:
        go: a file; what waits in the story waits for it.
    """
    heard = {"when": {"prompt": words.interrupted}, "say": "I heard you."}
    parts: dict[str, Any] = {
        "clarify": {
            "match": {"system": words.clarifier_is, "tools": [ASK]},
            "lines": [
                {"say": "First.", **ask("Q1", "What is it to be?", words.library, "Web"), "usage": used(20_000, 100)},
                {**ask("Q2", "Which colour?"), "usage": used(20_500, 100)},
                {**ask("Q3", "Which licence?"), "usage": used(21_000, 100)},
                {"say": words.brief, "usage": used(21_500, 400)},
            ],
        },
        "goal": {
            "match": {"opening": words.job_a},
            "anytime": [{**heard, "usage": used(22_500, 60)}],
            "lines": [
                {"say": "I look.", "call": {"Bash": {"command": LOOP.format(go=go)}}, "usage": used(22_000, 80)},
                {"name": "checklist", "say": words.goal, "usage": used(23_000, 300), **lost()},
            ],
        },
        "verdict-1": {
            "match": {"opening": [words.job_b, "FIRST REPORT"]},
            "lines": [
                {"say": "I look.", "call": {"Bash": {"command": "ls"}}, "usage": used(24_000, 70)},
                {"say": words.rejected, "usage": used(24_500, 200)},
            ],
        },
        "verdict-2": {
            "match": {"opening": [words.job_b, "SECOND REPORT"]},
            "lines": [{"say": words.achieved, "usage": used(25_000, 200)}],
        },
        "work-4": {
            "match": {"opening": "GEN-4"},
            "lines": [
                {"say": "FIRST REPORT", "usage": used(40_000, 500)},
                {
                    "name": "second",
                    "expect": {"prompt": words.feedback, "session": "same"},
                    "say": "SECOND REPORT",
                    "usage": used(41_000, 500),
                    **lost(),
                },
            ],
        },
        "work-3": {
            "match": {"opening": "GEN-3"},
            "lines": [
                {"say": "One more.", "call": agent("D"), "usage": used(45_000, 120)},
                {
                    "name": "killed",
                    "expect": {"result": "D is made"},
                    **ask("Q5", "Count what?"),
                    "usage": used(46_000, 90),
                },
                {"say": "On.", "call": {"Bash": {"command": "ls"}}, "usage": used(153_000, 60)},
                handoff(words, 4, "report", 153_500),
            ],
        },
        "work-2": {
            "match": {"opening": "GEN-2"},
            "anytime": [{**heard, "usage": used(52_000, 60)}],
            "lines": [
                {"say": "Third.", "call": agent("C"), "usage": used(50_000, 120)},
                {"name": "inbox", "call": {INBOX: {}}, "usage": used(51_000, 40)},
                {
                    "expect": {"result": words.mail},
                    "say": "On.",
                    "call": {"Bash": {"command": "ls"}},
                    "usage": used(152_000, 60),
                },
                handoff(words, 3, "make D", 152_500),
            ],
        },
        "work-1": {
            "match": {"system": words.coordinator_is, "tools": ["Agent"]},
            "lines": [
                {"say": "Two at once.", "call": [agent("A"), agent("B")], "usage": used(40_000, 200)},
                {"expect": {"result": ["A is made", "B is made"]}, **ask("Q4", "MIT?"), "usage": used(41_000, 90)},
                {"say": "On.", "call": {"Bash": {"command": "ls"}}, "usage": used(151_000, 60)},
                handoff(words, 2, "make C", 151_500),
            ],
        },
    }
    for task in "ABCD":
        parts[f"task-{task}"] = {
            "match": {"agent": "sub", "opening": f"[TASK-{task}]"},
            "lines": [
                {
                    "call": {"Bash": {"command": f"pwd > {task}.txt && pwd >> {go}.places"}},
                    "usage": used(6_000, 60),
                },
                {"say": f"{task} is made.", "usage": used(6_500, 80)},
            ],
        }
    subs = {name: part for name, part in parts.items() if name.startswith("task-")}
    return {"story": "a long run", "parts": {**subs, **{k: v for k, v in parts.items() if k not in subs}}}


def handoff(words: Words, generation: int, then: str, context: int) -> Line:
    return {
        "expect": {"prompt": words.write_it_down, "session": "same"},
        "say": words.handoff.format(generation=generation, next=then),
        "usage": used(context, 600),
    }
