"""Plugin folders travel with a flow, and one that is missing is an error (rulings R25)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flower.core.plugins import beside, checked
from flower.testing import RecordingSink
from tests.fakes.client import Own, init
from tests.flower.scene import SPEC, Make
from tests.sdk.stage import spec, stage


def plugin(folder: Path, name: str = "notes") -> Path:
    (folder / ".claude-plugin").mkdir(parents=True)
    (folder / ".claude-plugin" / "plugin.json").write_text(f'{{"name": "{name}"}}', encoding="utf-8")
    (folder / "skills" / "count").mkdir(parents=True)
    skill = "---\nname: count\ndescription: COUNTS-THINGS for tests\n---\nCount."
    (folder / "skills" / "count" / "SKILL.md").write_text(skill, encoding="utf-8")
    return folder


@pytest.mark.parametrize("kind", ["missing", "a file", "empty"])
def test_a_folder_that_is_no_plugin_is_an_error_and_not_silence(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "plugin"
    if kind == "a file":
        folder.write_text("", encoding="utf-8")
    elif kind == "empty":
        folder.mkdir()
    with pytest.raises(ValueError, match=r"plugin 不是插件目录.*plugin\.json"):
        checked([folder])


def test_what_stands_beside_a_flow_is_found(tmp_path: Path) -> None:
    assert beside(None) == beside(tmp_path / "flows.py") == []
    folder = plugin(tmp_path / "plugin")
    assert beside(tmp_path / "flows.py") == [folder]
    (folder / ".claude-plugin" / "plugin.json").unlink()
    with pytest.raises(ValueError, match=r"plugin\.json"):
        beside(tmp_path / "flows.py")


async def test_a_runtime_hands_them_on_besides_the_packages_own(make: Make, tmp_path: Path) -> None:
    runtime = make([init(), Own()])
    folder = plugin(tmp_path / "plugin")
    with pytest.raises(ValueError, match=r"plugin\.json"):
        runtime.plugin_dirs = [tmp_path / "nowhere"]
    assert runtime.plugin_dirs == []
    runtime.plugin_dirs = [folder]
    await runtime.run(SPEC, "x")
    assert runtime.clients[0].options.plugins[-1:] == [{"type": "local", "path": str(folder)}]


async def test_a_plugin_that_the_program_cannot_load_is_told_once(make: Make) -> None:
    broken: Any = init()
    broken.data["plugin_errors"] = [{"plugin": "x", "error": "no manifest"}]
    runtime = make([broken, Own()], [broken, Own()])
    sink = RecordingSink()
    await runtime.run(SPEC, "x", on_event=sink)
    await runtime.run(SPEC, "x", on_event=sink)
    (event,) = sink.of("error")
    assert "no manifest" in event.text
    assert event.payload == {"plugin_errors": [{"plugin": "x", "error": "no manifest"}]}


@pytest.mark.real
async def test_its_skills_reach_the_model(tmp_path: Path) -> None:
    folder = plugin(tmp_path / "flow" / "plugin")
    async with stage(tmp_path, ["Hello."]) as here, here.runtime() as runtime:
        runtime.plugin_dirs = [folder]
        sink = RecordingSink()
        assert (await runtime.run(spec(), "go", on_event=sink)).ok
    (began,) = [event for event in sink.of("system") if event.text == "init"]
    assert "notes:count" in began.payload["skills"]
    assert sink.of("error") == []
