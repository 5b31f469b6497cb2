"""From a window's text to a page."""

from __future__ import annotations

from tests.flower.cli.pictures import page_of


def test_colours_come_through_and_text_stays_text() -> None:
    page = page_of("\x1b[1;33m<b>&\x1b[0m x\x1b[2my\x1b[22mz\n")
    assert page.endswith(
        '<span style="font-weight:bold;color:#e3c078">&lt;b&gt;&amp;</span> x'
        '<span style="opacity:0.6">y</span>z\n</pre>'
    )
