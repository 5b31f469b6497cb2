"""`Credentials`: a user per run. What such a user must not do is in tests/bridge/adapters/test_redis_rights.py."""

from __future__ import annotations

from bridge.ports import Store
from tests.contracts.values import OTHER, RUN


async def test_each_grant_has_a_fresh_password(store: Store) -> None:
    name, password = await store.credentials.grant(RUN)
    again = await store.credentials.grant(RUN)
    other = await store.credentials.grant(OTHER)
    assert (name, again[0], other[0]) == ("run-k3f9qa", "run-k3f9qa", "run-zz8w2b")
    assert len({password, again[1], other[1]}) == 3
    assert len(password) >= 32


async def test_revoking_may_be_repeated(store: Store) -> None:
    await store.credentials.revoke(RUN)
    await store.credentials.grant(RUN)
    await store.credentials.revoke(RUN)
    await store.credentials.revoke(RUN)
