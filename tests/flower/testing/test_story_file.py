"""Story files: what is refused, with its place, and what is read."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flower.testing
from flower.testing import (
    Call,
    Condition,
    Fault,
    Pattern,
    StoryError,
    Usage,
    load_story,
    parse_story,
    read_story,
    story_file,
)

DOCS = Path(__file__).parents[3] / "docs" / "story-format.md"
STORIES = sorted((Path(flower.testing.__file__).parent / "stories").glob("*.yaml"))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "s.yaml: expected a story (a mapping), found nothing"),
        ("- a", "s.yaml: expected a story (a mapping), found a list"),
        ("story: x", "s.yaml: `parts` is missing: the agents that play, by name"),
        ("parts: {}", "s.yaml:1: parts: there is no part in it"),
        ("parts: [", "s.yaml:1: expected the node content, but found '<stream end>'"),
        ("parts:\n  a:\n    lines: [x]\n  a:\n    lines: [y]", "s.yaml:4: 'a' stands here twice"),
        (
            "parts:\n  a b:\n    lines: [x]",
            "s.yaml:2: parts.a b: 'a b' is no name for a part (letters, digits, - and _)",
        ),
        (
            "parts:\n  a:\n    match: {}\n    lines: [x]",
            "s.yaml:3: parts.a.match: the condition is empty; leave it out",
        ),
        ("parts:\n  a: {}", "s.yaml:2: parts.a: the part says nothing: it needs `lines` or `anytime`"),
        ("parts:\n  a:\n    lines: x", "s.yaml:3: parts.a.lines: expected a list of lines, found the text 'x'"),
        (
            "parts:\n  a:\n    lines:\n      - say: x\n        sleep: 3",
            "s.yaml:5: parts.a.lines[0].sleep: unknown word; expected one of: name, when, expect, take, think, say,"
            " call, then, stop, usage, delay, pace, fail, drop, hang, break",
        ),
        (
            "parts:\n  a:\n    lines:\n      - name: x",
            "s.yaml:4: parts.a.lines[0]: the line says nothing: it needs say, think or call"
            " (or a fault with `times: always`)",
        ),
        ("parts:\n  a:\n    lines:\n      - say: [x]", "s.yaml:4: parts.a.lines[0].say: expected a text, found a list"),
        (
            "parts:\n  a:\n    lines:\n      - call: Bash",
            "s.yaml:4: parts.a.lines[0].call: expected tools and their input (a mapping), found the text 'Bash'",
        ),
        (
            "parts:\n  a:\n    lines:\n      - call: {Bash: ls}",
            "s.yaml:4: parts.a.lines[0].call.Bash: expected the input of the tool (a mapping), found the text 'ls'",
        ),
        (
            "parts:\n  a:\n    lines:\n      - say: x\n        expect: {result: '/(/'}",
            "s.yaml:5: parts.a.lines[0].expect.result: /(/ is no regular expression: missing ), unterminated subpattern"
            " at position 0",
        ),
        (
            "parts:\n  a:\n    lines:\n      - say: x\n        delay: soon",
            "s.yaml:5: parts.a.lines[0].delay: expected a number from 0 up, found the text 'soon'",
        ),
        (
            "parts:\n  a:\n    lines:\n      - say: x\n        fail: {status: 200}",
            "s.yaml:5: parts.a.lines[0].fail.status: expected an HTTP error status (400 to 599), found 200",
        ),
        (
            "parts:\n  a:\n    lines:\n      - say: x\n        usage: {inputs: 3}",
            "s.yaml:5: parts.a.lines[0].usage.inputs: unknown word; expected one of: input, output, cache_read,"
            " cache_write, growth",
        ),
        (
            "parts:\n  a:\n    lines:\n      - either: []",
            "s.yaml:4: parts.a.lines[0].either: there is no line in it",
        ),
        (
            "parts:\n  a:\n    lines:\n      - x\n      - say: y\n        then: z",
            "s.yaml:5: `then` leads to 'z'; there are: due, end, next, stay",
        ),
        (
            "parts:\n  a:\n    lines:\n      - say: Hello ${you}",
            "s.yaml:4: variable ${you} is given nowhere; it needs a group (?P<you>…) or an entry in `vars`",
        ),
        (
            "parts: !!python/object/apply:os.system ['true']",
            "s.yaml:1: could not determine a constructor for the tag 'tag:yaml.org,2002:python/object/apply:os.system'",
        ),
    ],
)
def test_a_bad_story_is_refused_with_its_line_and_what_was_expected(text: str, error: str) -> None:
    with pytest.raises(StoryError) as caught:
        parse_story(text, name="s.yaml")
    assert str(caught.value) == error
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoryError, match=r"none\.yaml: cannot be read: No such file or directory"):
        load_story(tmp_path / "none.yaml")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StoryError, match=r"s\.yaml: cannot be read"):
        load_story(tmp_path / "s.yaml")


@given(st.text(alphabet="ab:-[]{}'\"&*!|>%#\n ${}parts", max_size=60))
def test_whatever_the_text_is_only_a_story_error_comes_of_it(text: str) -> None:
    with contextlib.suppress(StoryError):
        parse_story(text)


def test_every_word_of_the_format_is_read() -> None:
    story = parse_story(
        """
        story: All of it
        vars: {who: nobody}
        usage: {input: 5}
        delay: 1.5
        pace: 40
        parts:
          main:
            match: {system: You are Main, tools: [Bash], agent: main}
            take: {opening: '/for (?P<who>.+)/'}
            usage: {output: 7}
            anytime:
              - when: {prompt: stop, interrupted: true}
                say: Stopped.
              - when: {prompt: look}
                call: {Bash: {command: ls}}
            lines:
              - Hello ${who}.
              - name: work
                think: Hm.
                say: I work.
                call:
                  - Bash: {command: ls}
                  - Bash: {command: pwd}
                usage: {cache_read: 100}
                fail: {status: 429, retry_after: 2, times: 2}
                break: {after: 3}
              - name: report
                either:
                  - when: {result: [a, b], unless: {error: true}}
                    say: Good.
                    then: work
                  - expect: {session: same}
                    say: Bad.
                    stop: max_tokens
                    then: end
        """
    )
    (part,) = story.parts
    assert (story.title, story.delay, story.pace, story.usage) == ("All of it", 1.5, 40.0, Usage(input=5))
    assert part.match == Condition(system=(Pattern("You are Main"),), tools=("Bash",), agent="main")
    assert [line.then for line in part.anytime] == ["due", "stay"]
    hello, work, report = part.lines
    assert (hello[0].say, hello[0].then) == ("Hello ${who}.", "next")
    assert work[0].call == (Call("Bash", {"command": "ls"}), Call("Bash", {"command": "pwd"}))
    assert work[0].faults == (Fault(kind="error", status=429, retry_after=2.0, times=2), Fault(kind="break", after=3))
    assert [(line.name, line.then, line.stop) for line in report] == [
        ("report", "work", ""),
        ("report/2", "end", "max_tokens"),
    ]
    assert report[0].when.result == (Pattern("a"), Pattern("b"))


def test_the_same_words_make_a_story_in_python() -> None:
    written = read_story(
        {"parts": {"main": {"lines": ["Hello.", {"say": "Run", "call": {"Bash": {"command": "ls"}}}]}}}
    )
    read = parse_story(
        "parts:\n  main:\n    lines:\n      - Hello.\n      - say: Run\n        call: {Bash: {command: ls}}"
    )
    assert written == read


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_stories_that_are_shipped_are_sound(path: Path) -> None:
    assert load_story(path).parts


def test_the_two_languages_of_the_demo_play_the_same_lines() -> None:
    english, chinese = (load_story(path) for path in STORIES if path.stem.startswith("first-light"))
    for one, other in zip(english.parts, chinese.parts, strict=True):
        assert one.name == other.name
        assert [(line.name, line.then) for line in one.all_lines()] == [
            (line.name, line.then) for line in other.all_lines()
        ]
        assert one.usage == other.usage


def test_the_page_about_the_format_explains_every_word_and_its_first_story_is_sound() -> None:
    page = DOCS.read_text(encoding="utf-8")
    words = {
        *story_file._LINE,
        *story_file._TEXT_CONDITIONS,
        *story_file._YES_NO_CONDITIONS,
        "tools",
        "unless",
        "either",
    }
    assert sorted(word for word in words if f"`{word}`" not in page) == []
    first = page.partition("```yaml\n")[2].partition("```")[0]
    assert [part.name for part in parse_story(first).parts] == ["main"]
