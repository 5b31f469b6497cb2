"""Servers for the tests of the Redis adapter."""

from tests.fakes.redis import own_redis, shared_redis

__all__ = ["own_redis", "shared_redis"]
