"""The judges themselves: each refuses what it should, and together they take everything that we send (rulings R18)."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bots.slack.inbound import SLACK, FormRequest
from bots.slack.outbound import EN, ZH, form, render, whisper
from bridge.markup import blocks as markdown
from bridge.model import Button, Card, Person, PersonId, ThreadRef
from tests.fakes import slack_judges
from tests.fakes.slack_judges import BLOCK_JUDGES, JudgeMissingError, judge_block, judge_message, judge_view, schema_of

TEXT = {"type": "mrkdwn", "text": "hello", "verbatim": True}
PLAIN = {"type": "plain_text", "text": "A", "emoji": False}
BUTTON = {"type": "button", "action_id": "do-0", "text": PLAIN, "value": "a"}

GOOD: dict[str, dict[str, Any]] = {
    "section": {"type": "section", "block_id": "k/1", "text": TEXT, "expand": True},
    "divider": {"type": "divider", "block_id": "k/2"},
    "context": {"type": "context", "block_id": "k/3", "elements": [TEXT]},
    "actions": {"type": "actions", "block_id": "k/4", "elements": [BUTTON]},
    "input": {
        "type": "input",
        "block_id": "words",
        "label": PLAIN,
        "element": {"type": "plain_text_input", "action_id": "words", "multiline": True, "max_length": 3000},
    },
}
"""Every block type that we send."""

BAD: dict[str, tuple[dict[str, Any], set[str]]] = {
    "a section that is too long": (
        {**GOOD["section"], "text": {**TEXT, "text": "x" * 3001}},
        {"sdk", "slackblocks", "types"},
    ),
    "a section without a text": ({"type": "section", "block_id": "k"}, {"sdk"}),
    "a section with an empty text": (
        {**GOOD["section"], "text": {**TEXT, "text": ""}},
        {"sdk", "slackblocks", "types"},
    ),
    "an id that is too long": ({**GOOD["divider"], "block_id": "x" * 256}, {"sdk", "slackblocks", "types"}),
    "a divider with a text": ({**GOOD["divider"], "text": TEXT}, {"sdk", "types"}),
    "an empty context": ({**GOOD["context"], "elements": []}, {"sdk", "slackblocks"}),
    "a full context": ({**GOOD["context"], "elements": [TEXT] * 11}, {"sdk", "slackblocks", "types"}),
    "no button": ({**GOOD["actions"], "elements": []}, {"sdk", "slackblocks"}),
    "too many buttons": (
        {**GOOD["actions"], "elements": [{**BUTTON, "action_id": f"do-{n}"} for n in range(26)]},
        {"sdk", "slackblocks", "types"},
    ),
    "a long label": (
        {**GOOD["actions"], "elements": [{**BUTTON, "text": {**PLAIN, "text": "x" * 76}}]},
        {"sdk", "slackblocks", "types"},
    ),
    "a long value": (
        {**GOOD["actions"], "elements": [{**BUTTON, "value": "x" * 2001}]},
        {"sdk", "slackblocks", "types"},
    ),
    "a label with mark-up": ({**GOOD["actions"], "elements": [{**BUTTON, "text": TEXT}]}, {"types"}),
    "a style that there is not": ({**GOOD["actions"], "elements": [{**BUTTON, "style": "plain"}]}, {"sdk", "types"}),
    "a field that there is not": ({**GOOD["actions"], "elements": [{**BUTTON, "colour": "red"}]}, {"sdk", "types"}),
    "a long question before a press": (
        {
            **GOOD["actions"],
            "elements": [
                {
                    **BUTTON,
                    "confirm": {"title": PLAIN, "text": {**PLAIN, "text": "x" * 301}, "confirm": PLAIN, "deny": PLAIN},
                }
            ],
        },
        {"sdk", "slackblocks", "types"},
    ),
    "a long prompt": ({**GOOD["input"], "label": {**PLAIN, "text": "x" * 2001}}, {"sdk", "slackblocks", "types"}),
    "an input without an element": ({"type": "input", "block_id": "k", "label": PLAIN}, {"sdk", "types"}),
}


def verdicts(block: Mapping[str, Any], *, with_types: bool = True) -> set[str]:
    return {name for name, judge in BLOCK_JUDGES.items() if (with_types or name != "types") and judge(block)}


@pytest.mark.parametrize("name", sorted(GOOD))
def test_the_judges_that_are_always_there_take_what_is_right(name: str) -> None:
    assert judge_block(GOOD[name], with_types=False) == []


@pytest.mark.parametrize("name", sorted(BAD))
def test_the_judges_that_are_always_there_refuse_what_they_know(name: str) -> None:
    block, refused_by = BAD[name]
    assert verdicts(block, with_types=False) == refused_by - {"types"}


@pytest.mark.real
@pytest.mark.parametrize("name", sorted(GOOD))
def test_slacks_own_types_take_what_is_right(name: str) -> None:
    assert judge_block(GOOD[name], with_types=True) == []


@pytest.mark.real
@pytest.mark.parametrize("name", sorted(BAD))
def test_each_judge_refuses_what_it_knows(name: str) -> None:
    block, refused_by = BAD[name]
    assert verdicts(block) == refused_by


@pytest.mark.real
@pytest.mark.parametrize("kind", sorted(GOOD))
def test_every_block_type_that_we_send_has_two_judges_that_refuse_something_of_it(kind: str) -> None:
    found = [refused_by for block, refused_by in BAD.values() if block["type"] == kind]
    assert len(set().union(*found)) >= 2
    assert set().union(*found) & {"sdk", "slackblocks"}  # one that was not made by us from types


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text": ""}, "needs a text"),
        ({"text": "x" * 4_001}, "the text has 4001"),
        ({"text": "hi <!here>"}, "rings a crowd"),
        ({"blocks": [GOOD["divider"]] * 2}, "'k/2' stands 2 times"),
        ({"blocks": [{"type": "divider", "block_id": f"{n}"} for n in range(51)]}, "51 blocks"),
        ({"blocks": [{**GOOD["section"], "text": {**TEXT, "text": "<!channel> hi"}}]}, "rings a crowd"),
        ({"blocks": [{**GOOD["section"], "text": {"type": "mrkdwn", "text": "hi"}}]}, "not verbatim"),
        ({"blocks": [{**GOOD["actions"], "elements": [BUTTON, BUTTON]}]}, "'do-0' stands 2 times"),
        ({"blocks": [{**GOOD["actions"], "elements": [{**BUTTON, "value": "xoxb-1"}]}]}, "carries a secret"),
        (
            {
                "blocks": [
                    {**GOOD["section"], "block_id": f"{n}", "text": {**TEXT, "text": "x" * 3000}} for n in range(4)
                ]
            },
            "hold 12000 characters",
        ),
        ({"metadata": {"event_type": "x", "event_payload": {"text": "x" * 2_000}}}, "metadata is not tiny"),
    ],
)
def test_rules_across_blocks_are_ours(change: dict[str, Any], said: str) -> None:
    good = {"text": "hello", "blocks": [GOOD["section"]]}
    assert judge_message(good, with_types=False) == []
    complaints = judge_message({**good, **change}, with_types=False)
    assert any(said in complaint for complaint in complaints)


MARKDOWN = """# Plan <!channel>

Some **bold**, _it_, ~~gone~~, `code` and [a link](https://a.example/?a=1&b=2).

- [x] one
  1. nested
- two

> quoted
>
> ```
> code
> ```

| a | b |
|---|---|
| 1 | 数据 |

---

```python
print("<hi>")
```
"""


@pytest.mark.real
def test_every_judge_takes_all_that_we_send() -> None:
    buttons = (
        *(Button(action=f"answer {n}", label=f"Option {n} " * 9) for n in range(25)),
        Button(action="words", label="Answer in words", form="Which? " * 90),
        Button(action="end", label="End", style="danger", confirm="End the run? " * 60),
        Button(action="go", label="Continue", style="primary"),
    )
    asked = FormRequest(
        trigger="1.2.x",
        thread=ThreadRef(SLACK, "T1/C1/1.0"),
        author=Person(id=PersonId("T1/U1")),
        action="words",
        prompt="Which database should it use? " * 20,
        label="Answer in words",
    )
    card = Card(
        summary="Plan & more <b>",
        body=markdown(MARKDOWN),
        note="4 min · $0.21",
        buttons=buttons,
        rings=(PersonId("T1/U1"),),
    )
    assert judge_message(render(card, once="k3f9qa/card"), with_types=True) == []
    assert judge_message(whisper(MARKDOWN), with_types=True) == []
    assert [judge_view(form(asked, phrases), with_types=True) for phrases in (EN, ZH)] == [[], []]


@pytest.mark.real
def test_a_view_without_a_way_to_send_it_is_refused_by_more_than_us() -> None:
    view = {"type": "modal", "title": {**PLAIN, "text": "x" * 25}, "blocks": [GOOD["input"]]}
    complaints = judge_view(view, with_types=True)
    assert {complaint.partition(":")[0] for complaint in complaints} == {"sdk", "own", "types"}


def test_a_judge_that_is_not_installed_is_an_error_with_the_install_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(slack_judges, "GENERATOR", tmp_path / "none")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    schema_of.cache_clear()
    with pytest.raises(JudgeMissingError, match="run `npm ci` in the folder demo"):
        schema_of("KnownBlock")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(JudgeMissingError, match="install Node"):
        schema_of("KnownBlock")
