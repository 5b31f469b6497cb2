"""The page of examples/websocket_ui.py in a real browser: what a person does, and what a hostile model cannot."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from demo.screenshot import Browser, browser
from flower.testing import ScriptedModel, read_story
from tests.examples.program import started

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

MARKUP = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
STEERING = "\x1b[31mred\x07 \u202egnitautca\u202c \x00"
LONG = "x" * 3000
BRIEF = "## Goal\n${half}\n\n## Acceptance criteria\n- a\n\n## Bounds\n- b\n\n## Unknowns and assumptions\n- c"
STORY: dict[str, Any] = {
    "vars": {"half": "none"},
    "parts": {
        "clarify": {
            "match": {"system": "You are the clarifier"},
            "lines": [
                {
                    "say": f"{MARKUP}\n{STEERING}\n{LONG}",
                    "call": {
                        "mcp__human__ask": {
                            "question": f"Which half? {MARKUP}{LONG}",
                            "options": ["<b>north</b>", f"south {STEERING}{LONG}"],
                        }
                    },
                },
                {
                    "name": "again",
                    "take": {"result": "/^(?P<half><b>.+)$/"},
                    "say": "And?",
                    "call": {"mcp__human__ask": {"question": "Anything else?"}},
                },
                BRIEF,
            ],
        },
        "goal": {
            "match": {"opening": "Job A: set the goal"},
            "lines": ["## Goal\nx\n\n## Checklist\n- y"],
        },
    },
}


@dataclass(frozen=True, slots=True)
class Page:
    """One tab, driven through the browser's own protocol."""

    browser: Browser
    session: str

    async def evaluate(self, expression: str) -> Any:
        return await self.browser._evaluate(self.session, expression)

    async def until(self, condition: str) -> None:
        """Wait inside the page, which tells us when its contents have changed."""
        waiting = f"""new Promise((met, not) => {{
            const look = () => {{ if ({condition}) {{ watching.disconnect(); met(true); }} }};
            const watching = new MutationObserver(look);
            watching.observe(document.documentElement, {{subtree: true, childList: true, characterData: true}});
            setTimeout(() => not(new Error("not so: " + document.body.innerText.slice(0, 2000))), 9000);
            look();
        }})"""
        assert await self.evaluate(waiting) is True, await self.evaluate("document.body.innerText.slice(0, 2000)")

    async def click(self, label: str) -> None:
        found = (
            f"[...document.querySelectorAll('button')].find(each => each.textContent.startsWith({json.dumps(label)}))"
        )
        await self.until(f"!!{found}")
        await self.evaluate(f"{found}.focus(); {found}.click(); true")

    async def write(self, where: str, text: str) -> None:
        await self.evaluate(f"document.querySelector({json.dumps(where)}).value = {json.dumps(text)}; true")


async def opened(chromium: Browser, url: str, *, width: int) -> Page:
    target = (await chromium._do("Target.createTarget", url="about:blank"))["targetId"]
    session = (await chromium._do("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
    size = {"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": width < 500}
    await chromium._do("Emulation.setDeviceMetricsOverride", session, **size)
    await chromium._do("Page.enable", session)
    await chromium._do("Page.navigate", session, url=url)
    page = Page(chromium, session)
    async with asyncio.timeout(10):
        while await page.evaluate("document.readyState") != "complete":  # noqa: ASYNC110 - navigation replaces the page
            await asyncio.sleep(0.02)
    return page


async def test_without_the_key_the_page_says_what_to_open(tmp_path: Path) -> None:
    async with (
        ScriptedModel(read_story(STORY)) as model,
        started("websocket_ui.py", "Moon", "-p", "0", model=model, place=tmp_path) as program,
        browser() as chromium,
    ):
        url = (await program.line()).removeprefix("open ").strip()
        page = await opened(chromium, url.partition("#")[0], width=900)
        await page.until("document.body.innerText.includes('no key: open the address that was printed')")


async def test_a_person_answers_interrupts_and_ends_while_the_model_is_hostile(tmp_path: Path) -> None:
    async with (
        ScriptedModel(read_story(STORY)) as model,
        started("websocket_ui.py", "Moon", "-p", "0", model=model, place=tmp_path) as program,
        browser() as chromium,
    ):
        url = (await program.line()).removeprefix("open ").strip()
        phone, desk = await opened(chromium, url, width=360), await opened(chromium, url, width=1200)

        for page in (phone, desk):
            await page.until("document.querySelectorAll('.question').length === 1")
            seen = await page.evaluate("document.body.innerText")
            assert MARKUP in seen, "markup is shown as what it is"
            assert not set("\x1b\x07\x00\u202e\u202c") & set(seen)
            assert await page.evaluate("document.querySelectorAll('img, b:not(#step), script').length") == 1
            assert await page.evaluate("document.title") == "flower"
            assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth") is True

        # Even where something got into the page, nothing of it would run.
        await phone.evaluate(f"document.body.insertAdjacentHTML('beforeend', {json.dumps(MARKUP)}); true")
        await phone.evaluate("setTimeout(() => 0, 50), new Promise(done => setTimeout(done, 100, true))")
        assert await phone.evaluate("document.title") == "flower"

        # A button on one, and the other loses the question too; then words.
        await phone.click("<b>north</b>")
        await desk.until("document.querySelector('.question')?.textContent.startsWith('Anything else?')")
        await desk.write("#words", "not in C")
        await desk.click("Interrupt")
        await desk.until("document.body.innerText.includes('Sure? Subagents lose what they have not finished')")
        assert model.asked_of("clarify")[-1].line == "again", "one click is not enough"
        await desk.click("Sure?")
        await desk.until("document.querySelector('#receipt').textContent.includes('goes on with your words')")
        assert await desk.evaluate("document.querySelector('#words').value") == ""
        await desk.until("document.querySelector('.question')?.dataset.ask === 'q3'")
        await desk.write(".question input", "that is all")
        async with model.paused("goal"):
            await desk.click("Answer")
            await phone.until("document.querySelectorAll('.question').length === 0")
            await phone.until("document.body.innerText.includes('q3 answered')")
            await phone.until("document.querySelector('#step').textContent === 'Goal'")
            await phone.click("End")
            await phone.click("Sure?")
        await desk.until("document.querySelector('#step').textContent === 'It stopped in step Goal: ended-by-human'")
    assert "<b>north</b>" in (tmp_path / "here" / ".flower" / "notes" / "brief.md").read_text(encoding="utf-8")


SPOKEN = "I ask with `mcp__human__ask`, then run:\n```sh\necho '<b>`x`</b>'\n```\nand \u201c``\u201d stays."
SAID: dict[str, Any] = {
    "parts": {
        "clarify": {
            "match": {"system": "You are the clarifier"},
            "lines": [
                {
                    "say": SPOKEN,
                    "call": {
                        "mcp__human__ask": {"question": "Is `primes.py` right?", "options": ["Yes, `primes.py`", "No"]}
                    },
                },
                {"name": "again", "say": "Good."},
            ],
        }
    }
}


async def test_people_read_code_as_code_and_tools_by_the_name_they_know(tmp_path: Path) -> None:
    async with (
        ScriptedModel(read_story(SAID)) as model,
        started("websocket_ui.py", "Moon", "-p", "0", model=model, place=tmp_path) as program,
        browser() as chromium,
    ):
        url = (await program.line()).removeprefix("open ").strip()
        page = await opened(chromium, url, width=900)
        await page.until("document.querySelectorAll('.question').length === 1")
        seen = await page.evaluate("document.body.innerText")
        assert "mcp__" not in seen
        codes = "[...document.querySelectorAll('{}')].map(each => each.textContent)"
        spoken = await page.evaluate(codes.format("#log .entry:not(.small) code"))
        assert spoken[:2] == [
            "human.ask",
            "echo '<b>`x`</b>'",
        ]
        assert "and \u201c``\u201d stays." in seen
        assert await page.evaluate(codes.format(".question code")) == ["primes.py", "primes.py"]
        assert "human.ask" in await page.evaluate(codes.format("#log .small i"))
        async with model.paused("clarify.again"):
            await page.click("Yes, primes.py")
            await page.until("document.body.innerText.includes('q1 answered')")
            await page.click("End")
            await page.click("Sure?")
        await page.until("document.querySelector('#step').textContent.startsWith('It stopped in step Clarify')")
    log = (tmp_path / "here" / ".flower" / "notes" / "qa.md").read_text(encoding="utf-8")
    assert "[answered] Yes, `primes.py`" in log, "what is shown as code is answered as it was asked"
