"""The two catalogues say the same things (product 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from string import Formatter
from typing import Any

import pytest

from bridge import texts
from bridge.texts.units import money, thousands

EN, ZH = texts.of("en"), texts.of("zh")


def entries(catalogue: Any, path: str = "") -> Iterator[tuple[str, str]]:
    for each in fields(catalogue):
        value = getattr(catalogue, each.name)
        where = f"{path}.{each.name}".lstrip(".")
        if is_dataclass(value):
            yield from entries(value, where)
        elif isinstance(value, tuple):
            for number, row in enumerate(value):
                for column, text in enumerate(row):
                    yield f"{where}.{number}.{column}", text
        else:
            yield where, value


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_a_language_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no texts in 'xx'; there are en, zh"):
        texts.of("xx")


def test_both_catalogues_have_the_same_entries_with_the_same_placeholders() -> None:
    english, chinese = dict(entries(EN)), dict(entries(ZH))

    assert english.keys() == chinese.keys()
    assert {
        name: (placeholders(english[name]), placeholders(chinese[name]))
        for name in english
        if placeholders(english[name]) != placeholders(chinese[name])
    } == {}


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_no_entry_is_empty_and_every_code_mark_is_closed(language: str) -> None:
    for name, text in entries(texts.of(language)):
        assert text.strip(), name
        assert text.count("`") % 2 == 0, name


def test_chinese_entries_are_chinese() -> None:
    latin = {
        name
        for name, text in entries(ZH)
        if name != "language" and not any("\u4e00" <= char <= "\u9fff" for char in text)
    }

    assert {name for name in latin if placeholders(dict(entries(ZH))[name]) == set()} == {
        name for name in latin if name.startswith("helping.commands")
    }


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (252.4, "4 min 12 s"),
        (3_599, "59 min 59 s"),
        (3_600, "1 h 00 min"),
        (7_500, "2 h 05 min"),
        (172_799, "47 h 59 min"),
        (172_800, "2 d 0 h"),
        (10**9, "11574 d 1 h"),
    ],
)
def test_durations_for_people(seconds: float, said: str) -> None:
    assert EN.units.duration(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-1, "under a minute"), (59, "under a minute"), (60, "1 min"), (3_599, "59 min"), (3_660, "1 h 01 min")],
)
def test_durations_that_grow_are_said_in_minutes(seconds: float, said: str) -> None:
    assert EN.units.coarse(seconds) == said


def test_durations_in_chinese() -> None:
    assert ZH.units.duration(252) == "4 分 12 秒"
    assert ZH.units.coarse(660) == "11 分钟"


@pytest.mark.parametrize(
    ("usd", "said"),
    [
        (0.0, "$0.00"),
        (0.0001, "~$0.01"),
        (0.0049, "~$0.01"),
        (0.005, "$0.01"),
        (0.2149, "$0.21"),
        (1234.5, "$1,234.50"),
    ],
)
def test_money_for_people(usd: float, said: str) -> None:
    assert money(usd) == said


@pytest.mark.parametrize(
    ("tokens", "said"), [(0, "0"), (999, "999"), (1_000, "1K"), (34_499, "34K"), (999_499, "999K"), (999_500, "1.0M")]
)
def test_tokens_for_people(tokens: int, said: str) -> None:
    assert thousands(tokens) == said
