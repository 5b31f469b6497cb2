"""The two pages for users say what runs: their Python stands in a file that a test runs, their links lead somewhere."""

from __future__ import annotations

import re
import shutil
import sys
from asyncio import create_subprocess_exec, subprocess
from pathlib import Path

import pytest

import flower.testing
from flower.testing import ScriptedModel, load_story
from tests.examples.program import EXAMPLES, ROOT, surroundings

TESTING, FLOWER = ROOT / "docs" / "testing-your-flows.md", ROOT / "docs" / "flower.md"
PAGES = [TESTING, FLOWER]
RUN = [*sorted(EXAMPLES.glob("*.py")), ROOT / "tests" / "examples" / "test_recipes.py"]
FIRST_LIGHT = Path(flower.testing.__file__).parent / "stories" / "first-light.yaml"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def lines_of(text: str) -> str:
    """The text without blank lines and indentation: a page may show a part of a function."""
    return "\n" + "".join(f"{line.strip()}\n" for line in text.splitlines() if line.strip())


async def output_of(*argv: str, place: Path, model: ScriptedModel | None) -> tuple[int | None, str]:
    process = await create_subprocess_exec(
        *argv, cwd=place, env=surroundings(model, place / "home"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    out, _ = await process.communicate()
    return process.returncode, out.decode()


def test_python_on_the_pages_is_copied_from_what_is_run() -> None:
    run = [lines_of(file.read_text(encoding="utf-8")) for file in RUN]
    shown = [block for page in PAGES for block in blocks(page, "python")]
    own_program = blocks(FLOWER, "python")[0]
    strangers = [block for block in shown if block != own_program and not any(lines_of(block) in file for file in run)]
    assert not strangers, strangers[0]
    assert len(shown) > 15


def test_the_yaml_on_the_page_is_that_of_the_recipe() -> None:
    recipes = lines_of((ROOT / "tests" / "examples" / "test_recipes.py").read_text(encoding="utf-8"))
    (shown,) = blocks(TESTING, "yaml")
    assert lines_of(shown) in recipes


def test_the_page_names_everything_that_flower_testing_offers_to_a_test() -> None:
    said = TESTING.read_text(encoding="utf-8")
    needed = {"ScriptedModel", "StillWaitingError", "StoryError", "StoryFailedError", "UnansweredError", "PRICES"}
    needed |= {"cost", "load_story", "play", "read_log", "read_story", "scripted_env", "scripted_surroundings"}
    assert {name for name in needed if name not in said} == set()
    assert needed <= set(flower.testing.__all__)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    headings = {re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in text.splitlines()}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        file, _, anchor = target.partition("#")
        assert not file or (page.parent / file).exists(), target
        assert not anchor or file or anchor in headings, target


@pytest.mark.real
@pytest.mark.timeout(60)
async def test_the_first_test_passes_alone_with_nothing_around_it(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "test_greeting.py", tmp_path)
    status, out = await output_of(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_greeting.py", place=tmp_path, model=None
    )
    assert (status, "1 passed" in out) == (0, True), out


@pytest.mark.real
@pytest.mark.timeout(60)
async def test_the_first_test_passes_in_a_checkout_for_somebody_who_has_pytest_and_no_plugin_of_ours(
    tmp_path: Path,
) -> None:
    ours = shutil.ignore_patterns("__pycache__", "node_modules", ".*", "var")
    for folder in ("examples", "tests", "flower"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ours)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    # pytest-timeout comes with the extra `dev` alone; what it adds is unknown to pytest without it.
    plain = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:timeout", "examples/test_greeting.py"]
    status, out = await output_of(sys.executable, *plain, place=tmp_path, model=None)
    assert (status, "1 passed" in out) == (0, True), out


@pytest.mark.real
@pytest.mark.timeout(60)
async def test_the_first_program_of_the_page_runs_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(blocks(FLOWER, "python")[0], encoding="utf-8")
    async with ScriptedModel(load_story(FIRST_LIGHT)) as model:
        status, out = await output_of(sys.executable, "first.py", place=tmp_path, model=model)
    assert (status, out.splitlines()[-1].partition(" ")[0]) == (0, "done"), out
    assert (tmp_path / "site" / "primes.out").exists()
