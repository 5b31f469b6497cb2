"""Every key is made in one place and described in one table."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from bridge.adapters import keys as module
from bridge.adapters.keys import BELLS, Keys
from bridge.model import Platform, RunId, ThreadRef

RUN = RunId("k3f9qa")
OF_A_RUN = (
    Keys.events,
    Keys.state,
    Keys.lease,
    Keys.commands,
    Keys.command_ids,
    Keys.record,
    Keys.view,
    Keys.slots,
    Keys.user,
    Keys.asks,
)
runs = st.from_regex(r"[a-z0-9]{1,12}", fullmatch=True).map(RunId)


def test_the_table_describes_every_key() -> None:
    keys = Keys("P")
    made = {make(keys, RunId("R")) for make in OF_A_RUN}
    made |= {keys.runs, keys.live, keys.lead("<account>"), keys.bells[0]}
    made.add(keys.thread(ThreadRef(Platform("<platform>"), "<key>")))
    inbox = Platform("<platform>")
    made |= {keys.inbox(inbox), keys.inbox_ids(inbox), keys.inbox_dead(inbox)}
    table = (module.__doc__ or "").splitlines()
    assert {line.split("`")[1] for line in table if line.startswith("| `P:")} == made


def test_the_keys_are_these() -> None:
    keys = Keys()
    assert keys.events(RUN) == "flower:run:{k3f9qa}:events"
    assert keys.bell(RUN) == "flower:bell:5"
    assert keys.thread(ThreadRef(Platform("slack"), "T1/C1/17.001700")) == "flower:thread:slack:T1/C1/17.001700"
    assert keys.inbox(Platform("slack")) == "flower:inbox:{slack}:items"


@given(runs, runs)
def test_keys_of_two_runs_never_meet(one: RunId, other: RunId) -> None:
    keys = Keys("flower")
    first = {make(keys, one) for make in OF_A_RUN}
    second = {make(keys, other) for make in OF_A_RUN}
    assert len(first) == len(OF_A_RUN)
    assert one == other or not first & second


@given(runs)
def test_keys_of_a_run_share_one_slot(run: RunId) -> None:
    tags = {re.findall(r"\{(.*?)\}", make(Keys("flower"), run))[0] for make in OF_A_RUN}
    assert tags == {run}


@given(runs)
def test_a_run_rings_a_bell_that_is_listened_to(run: RunId) -> None:
    keys = Keys("flower")
    assert len(keys.bells) == BELLS == 16
    assert keys.bell(run) in keys.bells
