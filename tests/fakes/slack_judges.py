"""Judges of what we send to Slack. Each says in lines what is wrong; nobody on this project wrote the first three.

`sdk` is Slack's own Python library, `slackblocks` a third party's table of limits, `types` a JSON Schema made at test
time from Slack's TypeScript types, with the limits of their comments; `own` are the rules that no schema has.
A judge that is not installed is an error, never a pass (rulings R17).
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import slackblocks._limits as limits
from slack_sdk.errors import SlackClientError
from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

NODE_MODULES = Path(__file__).parents[2] / "demo" / "node_modules"
GENERATOR = NODE_MODULES / "ts-json-schema-generator" / "bin" / "ts-json-schema-generator.js"
TYPES = NODE_MODULES / "@slack" / "types" / "dist" / "index.d.ts"
INSTALL = "run `npm ci` in the folder demo"

MESSAGE_TEXT = 4_000
MESSAGE_TOTAL = 10_000
METADATA_TOTAL = 1_000

Json = Mapping[str, Any]
BlockJudge = Callable[[Json], list[str]]


class JudgeMissingError(Exception):
    """A judge is not installed. Says how it is."""


def judge_message(args: Json, *, with_types: bool) -> list[str]:
    """Judge the arguments of `chat.postMessage`, `chat.update`, `chat.postEphemeral` or a `response_url`."""
    blocks: Sequence[Json] = args.get("blocks") or []
    found = [*_own_message(args, blocks), *_own_blocks(blocks)]
    for number, block in enumerate(blocks):
        found += [f"block {number} ({block.get('type')}): {said}" for said in judge_block(block, with_types=with_types)]
    return found


def judge_view(view: Json, *, with_types: bool) -> list[str]:
    """Judge the view of `views.open`."""
    found = [*_sdk_view(view), *_own_blocks(view.get("blocks") or []), *_own_view(view)]
    found += [f"types: {said}" for said in _against("View", view)] if with_types else []
    for block in view.get("blocks") or []:
        found += judge_block(block, with_types=with_types)
    return found


def judge_block(block: Json, *, with_types: bool) -> list[str]:
    """Let every judge look at one block."""
    judges = BLOCK_JUDGES if with_types else {name: BLOCK_JUDGES[name] for name in BLOCK_JUDGES if name != "types"}
    return [f"{name}: {said}" for name, judge in judges.items() for said in judge(block)]


# -- Slack's Python library -------------------------------------------------------------------------------------


def _sdk(block: Json) -> list[str]:
    try:
        parsed = Block.parse(dict(block))
        if parsed is None:
            return ["not a block"]
        parsed.validate_json()
        shown = parsed.to_dict()
    except (SlackClientError, TypeError, ValueError, KeyError, AttributeError) as err:
        return [f"{type(err).__name__}: {err}"]
    return [] if shown == block else [f"reads it as {json.dumps(shown)[:300]}"]


def _sdk_view(view: Json) -> list[str]:
    try:
        parsed = View(**view)
        parsed.validate_json()
    except (SlackClientError, TypeError, ValueError) as err:
        return [f"sdk: {type(err).__name__}: {err}"]
    return [] if parsed.to_dict() == view else ["sdk: reads the view as another one"]


# -- the third party's table ------------------------------------------------------------------------------------

_TABLE: dict[str, dict[str, tuple[int, int]]] = {
    "section": {"text": (limits.TEXT_MIN_LENGTH, limits.SECTION_TEXT_MAX_LENGTH)},
    "context": {"elements": (1, limits.CONTEXT_ELEMENTS_MAX_ITEMS)},
    "actions": {"elements": (1, limits.ACTIONS_ELEMENTS_MAX_ITEMS)},
    "divider": {},
    "input": {"label": (1, limits.INPUT_LABEL_MAX_LENGTH)},
    "button": {
        "text": (1, limits.BUTTON_TEXT_MAX_LENGTH),
        "value": (1, limits.BUTTON_VALUE_MAX_LENGTH),
        "action_id": (1, limits.ACTION_ID_MAX_LENGTH),
    },
    "confirm": {
        "title": (1, limits.CONFIRMATION_TITLE_MAX_LENGTH),
        "text": (1, limits.CONFIRMATION_TEXT_MAX_LENGTH),
        "confirm": (1, limits.CONFIRMATION_CONFIRM_MAX_LENGTH),
        "deny": (1, limits.CONFIRMATION_DENY_MAX_LENGTH),
    },
    "mrkdwn": {"text": (limits.TEXT_MIN_LENGTH, limits.TEXT_MAX_LENGTH)},
    "plain_text_input": {"action_id": (1, limits.ACTION_ID_MAX_LENGTH)},
}


def _slackblocks(block: Json) -> list[str]:
    return list(_walk_limits(block, str(block.get("type"))))


def _walk_limits(node: Json, kind: str) -> Iterator[str]:
    if kind not in _TABLE:
        yield f"no limits are known for {kind}"
        return
    for name, (least, most) in {**_TABLE[kind], "block_id": (1, limits.BLOCK_ID_MAX_LENGTH)}.items():
        if name in node:
            value = node[name]
            size = len(value["text"] if isinstance(value, Mapping) else value)
            if not least <= size <= most:
                yield f"{kind}.{name} has {size}, allowed are {least} to {most}"
    if isinstance(node.get("confirm"), Mapping) and kind != "confirm":
        yield from _walk_limits(node["confirm"], "confirm")
    if isinstance(node.get("element"), Mapping):
        yield from _walk_limits(node["element"], str(node["element"].get("type")))
    for element in node.get("elements") or []:
        yield from _walk_limits(element, str(element.get("type")))


# -- the JSON Schema of Slack's types ---------------------------------------------------------------------------


def _types(block: Json) -> list[str]:
    return _against("KnownBlock", block)


def _against(name: str, value: Json) -> list[str]:
    """Check against the definition that the value's `type` names: an error in a union of thirty says nothing."""
    schema = schema_of(name)
    kinds = {
        definition["properties"]["type"].get("const"): key
        for key, definition in schema["definitions"].items()
        if "const" in definition.get("properties", {}).get("type", {})
    }
    target = kinds.get(value.get("type"))
    if target is None:
        return [f"no such type: {value.get('type')!r}"]
    narrowed = {"$ref": f"#/definitions/{target}", "definitions": schema["definitions"]}
    errors = jsonschema.Draft7Validator(narrowed).iter_errors(value)
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in errors]


@functools.cache
def schema_of(name: str) -> dict[str, Any]:
    """Make the JSON Schema of one of Slack's types. Takes about two seconds, once.

    Raises:
        JudgeMissingError: node, the types or the generator are not installed.
    """
    node = shutil.which("node")
    if node is None:
        raise JudgeMissingError("the judge `types` needs node: install Node.js 20 or newer")
    if not (GENERATOR.exists() and TYPES.exists()):
        raise JudgeMissingError(f"the judge `types` is not installed: {INSTALL}")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "schema.json"
        argv = [node, str(GENERATOR), "--path", str(TYPES), "--type", name, "--no-type-check", "-o", str(out)]
        done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise JudgeMissingError(f"the judge `types` does not work: {(done.stderr or done.stdout)[-400:]}")
        schema: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    for definition in schema["definitions"].values():
        for field, prop in definition.get("properties", {}).items():
            definition["properties"][field] = _limited(prop)
    return schema


_MOST_CHARACTERS = re.compile(r"(?i)max(?:imum)? length(?: for the `?text`?)?[^.]*?(\d+)\s+characters")
_LEAST_CHARACTERS = re.compile(r"(?i)minimum length[^.]*? is (\d+)")
_MOST_ITEMS = re.compile(r"(?i)(?:maximum number of items is|maximum of|max of) (\d+)")


def _limited(prop: dict[str, Any]) -> dict[str, Any]:
    """Turn the limits that stand in a comment into rules."""
    said = " ".join(str(prop.get("description", "")).split())
    most, least, items = (pattern.search(said) for pattern in (_MOST_CHARACTERS, _LEAST_CHARACTERS, _MOST_ITEMS))
    rules: dict[str, Any] = {}
    if most:
        rules["maxLength"] = int(most[1])
    if least:
        rules["minLength"] = int(least[1])
    if prop.get("type") == "array":
        return {**prop, **({"maxItems": int(items[1])} if items else {})}
    if prop.get("type") == "string":
        return {**prop, **rules}
    if not rules or "type" in prop:
        return prop
    return {"allOf": [prop, {"properties": {"text": rules}}]}


# -- rules that no schema has -----------------------------------------------------------------------------------

_CROWD = re.compile(r"<!(?:here|channel|everyone|subteam)[^>]*>")
_SECRET = re.compile(r"xox[a-z]-|xapp-|https?://")


def _own_message(args: Json, blocks: Sequence[Json]) -> Iterator[str]:
    text = args.get("text")
    if not isinstance(text, str) or not text.strip():
        yield "own: a message needs a text beside its blocks: the notification, and what is read aloud"
    elif len(text) > MESSAGE_TEXT:
        yield f"own: the text has {len(text)} characters, {MESSAGE_TEXT} are allowed"
    if len(blocks) > 50:
        yield f"own: {len(blocks)} blocks, 50 are allowed"
    nodes = [node for block in blocks for node in _nodes(block)]
    total = sum(len(node["text"]) for node in nodes if isinstance(node.get("text"), str))
    if total > MESSAGE_TOTAL:
        yield f"own: the blocks hold {total} characters, about {MESSAGE_TOTAL} are safe"
    if len(json.dumps(args.get("metadata", {}))) > METADATA_TOTAL:
        yield "own: the metadata is not tiny"
    marked = [node for node in nodes if node.get("type") == "mrkdwn"]
    for where in (str(text), *(str(node["text"]) for node in marked)):
        yield from (f"own: rings a crowd: {found}" for found in _CROWD.findall(where))
    yield from (f"own: not verbatim: {node['text'][:60]!r}" for node in marked if node.get("verbatim") is not True)


def _own_blocks(blocks: Sequence[Json]) -> Iterator[str]:
    yield from _doubled("block_id", blocks)
    for block in blocks:
        elements: Sequence[Json] = block.get("elements") or []
        yield from _doubled("action_id", elements)
        if any(each.get("type") == "button" and _SECRET.search(str(each.get("value"))) for each in elements):
            yield "own: a button carries a secret or an address (SL-7)"
    if sum(len(block.get("text", "")) for block in blocks if block.get("type") == "markdown") > 12_000:
        yield "own: markdown blocks over 12,000 characters"
    if sum(block.get("type") == "table" for block in blocks) > 1:
        yield "own: more than one table"


def _doubled(name: str, items: Sequence[Json]) -> Iterator[str]:
    counted = Counter(str(item[name]) for item in items if name in item)
    yield from (f"own: {name} {each!r} stands {times} times" for each, times in counted.items() if times > 1)


def _own_view(view: Json) -> Iterator[str]:
    if any(block.get("type") == "input" for block in view.get("blocks") or []) and "submit" not in view:
        yield "own: a modal with an input needs submit"
    for name in ("title", "submit", "close"):
        if len(view.get(name, {}).get("text", "")) > 24:
            yield f"own: {name} over 24 characters"


def _nodes(node: object) -> Iterator[Json]:
    """Every object in a tree."""
    if isinstance(node, Mapping):
        yield node
        for value in node.values():
            yield from _nodes(value)
    elif isinstance(node, list):
        for value in node:
            yield from _nodes(value)


BLOCK_JUDGES: dict[str, BlockJudge] = {"sdk": _sdk, "slackblocks": _slackblocks, "types": _types}
