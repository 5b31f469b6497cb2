from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import anyio
import pytest

from flower import texts

TOPICS = (
    "bequest",
    "rules",
    "documents",
    "workbench",
    "hooks",
    "workflow",
    "human",
    "isolation",
    "running",
    "stores",
    "surroundings",
    "updates",
    "commands",
    "terminal",
)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLOWER_LANG", raising=False)


def entries(topic: str, language: str) -> Iterator[tuple[str, str]]:
    """Every single string of a topic, tuples opened."""
    catalogue: Any = getattr(texts.of(language), topic)
    for field in dataclasses.fields(catalogue):
        value = getattr(catalogue, field.name)
        for number, text in enumerate(value if isinstance(value, tuple) else (value,)):
            yield f"{field.name}[{number}]" if isinstance(value, tuple) else field.name, text


def placeholders(text: str) -> list[str]:
    return sorted(set(re.findall(r"\{(\w+)(?:!\w)?(?::[^{}]*)?\}", text)))


def test_an_unknown_language_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(ValueError, match="'fr'; there are zh, en"):
        texts.of("fr")


def test_an_unknown_flower_lang_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_LANG", "EN_us")
    with pytest.raises(ValueError, match=r"FLOWER_LANG: no texts in 'EN_us'; there are zh, en"):
        texts.current()


def test_speaking_an_unknown_language_changes_nothing() -> None:
    with pytest.raises(ValueError, match="'fr'"), texts.speaking("fr"):
        pass
    assert texts.current().language == "zh"


def test_chinese_is_spoken_where_nothing_is_set() -> None:
    assert texts.current() is texts.of("zh")


def test_an_empty_flower_lang_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_LANG", "")
    assert texts.current().language == "zh"


def test_flower_lang_is_read_when_somebody_asks_not_when_the_module_was_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FLOWER_LANG", "en")
    assert texts.current().language == "en"


def test_speaking_wins_over_flower_lang_and_ends_with_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_LANG", "en")
    with texts.speaking("zh"):
        assert texts.current().language == "zh"
        with texts.speaking(None):
            assert texts.current().language == "zh"
        with texts.speaking("en"):
            assert texts.of(None).language == "en"
        assert texts.current().language == "zh"
    assert texts.current().language == "en"


def test_speaking_ends_with_its_block_when_that_fails() -> None:
    with pytest.raises(KeyError), texts.speaking("en"):
        raise KeyError
    assert texts.current().language == "zh"


async def test_two_tasks_speak_two_languages() -> None:
    heard: dict[str, str] = {}
    both = anyio.Event()

    async def speak(language: str, *, last: bool) -> None:
        with texts.speaking(language):
            if last:
                both.set()
            await both.wait()
            heard[language] = texts.current().language

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: speak("zh", last=False))
        group.start_soon(lambda: speak("en", last=True))
    assert heard == {"zh": "zh", "en": "en"}


def test_a_context_that_was_copied_goes_on_speaking() -> None:
    with texts.speaking("en"):
        context = copy_context()
    assert context.run(texts.current).language == "en"


@pytest.mark.parametrize("topic", TOPICS)
def test_both_catalogues_say_something_under_every_key(topic: str) -> None:
    for language in texts.LANGUAGES:
        silent = [key for key, text in entries(topic, language) if not text.strip()]
        assert silent == [], language


@pytest.mark.parametrize("topic", TOPICS)
def test_both_catalogues_have_the_same_placeholders(topic: str) -> None:
    chinese, english = (
        {key: placeholders(text) for key, text in entries(topic, language) if placeholders(text)}
        for language in ("zh", "en")
    )
    assert chinese == english


@pytest.mark.parametrize("topic", TOPICS)
def test_no_english_entry_holds_chinese(topic: str) -> None:
    assert [key for key, text in entries(topic, "en") if re.search(r"[一-鿿]", text)] == []


def test_catalogues_are_values_that_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        texts.of("zh").documents.empty = "x"  # type: ignore[misc]  # that it is refused is the test
