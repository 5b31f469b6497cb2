"""The words that start a run. Bad input first: nothing starts by accident."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import texts
from bridge.starts import Problem, StartWish, parse_start

EN = texts.of("en")


def wish(text: str) -> StartWish:
    match parse_start(text, EN):
        case StartWish() as found:
            return found
        case Problem(text=why):
            pytest.fail(why)


def problem(text: str) -> str:
    match parse_start(text, EN):
        case Problem(text=why):
            return why
        case StartWish() as found:
            pytest.fail(f"would start {found}")


@pytest.mark.parametrize("text", ["", "   ", "\n", "--new", "--budget 5", "…", "--", "-- ", '""'])
def test_an_empty_request_is_refused_with_an_example(text: str) -> None:
    assert problem(text) == (
        "What should be done? For example: `/flower write a small program that prints the first ten primes`"
    )


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("x --bugdet 5", "budget"),
        ("x --work-space a", "workspace"),
        ("--timeot 5m x", "timeout"),
        ("x --flows a", "flow"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_right_one(text: str, near: str) -> None:
    assert f"Did you mean `--{near}`? Nothing was started." in problem(text)


def test_an_option_that_is_like_none_is_refused_with_all_that_there_are() -> None:
    why = problem("fix --verbose output")

    assert "There is no option `--verbose`. Known: --workspace, --flow, --budget, --asks, --timeout, --new." in why
    assert "put it in quotes" in why


@pytest.mark.parametrize("option", ["isolate", "watch"])
def test_options_of_a_later_issue_say_so(option: str) -> None:
    assert problem(f"x --{option} @bob") == f"`--{option}` is not built yet. Nothing was started."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x --budget", "`--budget` needs a value, for instance `--budget 5`."),
        ("x --budget --new", "`--budget` needs a value"),
        ("--workspace", "`--workspace` needs a value, for instance `--workspace site`."),
        ("x --budget nothing", "`--budget nothing`: expected US dollars above 0, such as 5 or 2.50."),
        ("x --budget 0", "expected US dollars above 0"),
        ("x --budget -3", "expected US dollars above 0"),
        ("x --budget inf", "expected US dollars above 0"),
        ("x --budget nan", "expected US dollars above 0"),
        ("x --budget 1e99", "expected US dollars above 0"),
        ("x --asks many", "`--asks many`: expected a whole number from 0, such as 3."),
        ("x --asks -1", "expected a whole number"),
        ("x --asks 1.5", "expected a whole number"),
        ("x --timeout soon", "`--timeout soon`: expected a time such as 45m, 2h or 90s, or 0 for not waiting."),
        ("x --timeout 45", "expected a time"),
        ("x --timeout m", "expected a time"),
        ("x --budget 5 --budget 6", "`--budget` is there twice."),
        ("x --new --new", "`--new` is there twice."),
    ],
)
def test_a_bad_value_is_refused_with_what_was_expected(text: str, why: str) -> None:
    said = problem(text)

    assert why in said
    assert said.endswith("Nothing was started.")


def test_a_request_without_end_is_refused() -> None:
    assert problem("x" * 20_001) == "The request has 20001 characters; at most 20000 are taken. Nothing was started."
    assert wish("x" * 20_000).request == "x" * 20_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("write primes", StartWish(request="write primes")),
        ("--workspace site write primes", StartWish(request="write primes", workspace="site")),
        ("write primes --budget 2.50", StartWish(request="write primes", budget=2.5)),
        ("write --budget $5 primes", StartWish(request="write primes", budget=5.0)),
        ("--budget=5 --asks=0 go", StartWish(request="go", budget=5.0, asks=0)),
        ("--BUDGET 5 go", StartWish(request="go", budget=5.0)),
        ("go --timeout 45m", StartWish(request="go", timeout=2_700.0)),
        ("go --timeout 1h30m", StartWish(request="go", timeout=5_400.0)),
        ("go --timeout 90s", StartWish(request="go", timeout=90.0)),
        ("go --timeout 0", StartWish(request="go", timeout=0.0)),
        ("--new go", StartWish(request="go", new=True)),
        ('--flow "team flow" go', StartWish(request="go", flow="team flow")),
        ("--flow “my:flow” go", StartWish(request="go", flow="my:flow")),
        ("—budget 5 go", StartWish(request="go", budget=5.0)),
        ("go –new", StartWish(request="go", new=True)),
    ],
)
def test_options_are_read_wherever_they_stand(text: str, expected: StartWish) -> None:
    assert wish(text) == expected


@pytest.mark.parametrize(
    "request_",
    [
        'say "hello --world" and `ls --all`',
        "fix it — properly – please",
        "a line\n\n    indented\n\tcode\nend",
        "```\ncurl --fail x\n```\nthat",
        "what’s “this --odd” thing",
        "2 - 1 = 1, a--b, x-- y",
        "写一个程序,打印前十个质数",
    ],
)
def test_the_request_is_kept_to_the_character(request_: str) -> None:
    assert wish(request_).request == request_
    assert wish(f"--budget 5 {request_} --new").request == request_


def test_a_bare_double_dash_ends_the_options() -> None:
    assert wish("--budget 5 -- explain --new to me") == StartWish(request="explain --new to me", budget=5.0)


def test_only_what_was_typed_is_an_option_of_the_record() -> None:
    assert wish("go").options == {}
    assert wish("go --timeout 0 --asks 0 --new").options == {"timeout": 0.0, "asks": 0, "new": True}


@given(st.text(max_size=80))
def test_any_text_is_a_wish_or_a_problem(text: str) -> None:
    assert isinstance(parse_start(text, EN), StartWish | Problem)


@given(st.text(alphabet="ab \"'`\n“”", max_size=40))
def test_a_request_without_dashes_comes_through_whole(text: str) -> None:
    match parse_start(text, EN):
        case StartWish(request=request):
            assert request == text.strip()
        case Problem():
            assert not any(char.isalnum() for char in text)


@pytest.mark.parametrize("word", ["help", "LIST", " status ", "stop-all"])
def test_a_lone_word_to_the_bot_starts_nothing(word: str) -> None:
    said = problem(word)
    assert "`/flower` and what you want done" in said if word == "help" else "is not built yet" in said


def test_a_request_that_begins_with_such_a_word_is_a_request() -> None:
    assert wish("list the open issues").request == "list the open issues"
