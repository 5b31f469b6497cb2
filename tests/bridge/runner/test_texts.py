from __future__ import annotations

from dataclasses import fields
from string import Formatter

import pytest

from bridge.texts import runner


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("name", [each.name for each in fields(runner.EN)])
def test_both_languages_say_it_with_the_same_placeholders(name: str) -> None:
    english, chinese = getattr(runner.EN, name), getattr(runner.ZH, name)
    assert placeholders(english) == placeholders(chinese)
    assert any("\u4e00" <= char <= "\u9fff" for char in chinese)
    assert not english.rstrip().endswith(".")


def test_a_language_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="no texts in 'xx'"):
        runner.of("xx")
