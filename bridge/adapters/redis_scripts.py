"""What must happen in one step inside the server (infra facts 7.5): Lua, one round trip each.

All keys of a script belong to one run, one platform's inbox, or are a single key, so each works on a cluster as well.
Times are the server's own: clocks of two machines are never compared.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from bridge.model import FINAL

FENCED, GAP, HELD, FINISHED, UNKNOWN = -1, -2, -3, -4, -5
"""First element of an answer that is a refusal."""


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua text and the name under which the server keeps it."""

    text: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest())


_NOW = """
local function now()
  local time = redis.call('TIME')
  return string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
"""

_RUN = f"""
local final = {{{", ".join(f"['{status}'] = true" for status in sorted(FINAL))}}}

local function status_of(state)
  return redis.call('HGET', state, 'status')
end

local function newest(state)
  return tonumber(redis.call('HGET', state, 'fence') or '0')
end

local function set_status(state, status)
  if status_of(state) ~= status then
    redis.call('HSET', state, 'status', status, 'since', now())
  end
end
"""

# The id of an entry is `<seq>-0`, and the server remembers the last id of a stream also when it was trimmed to nothing.
_HAND_IN = f"""
local function last_of(events)
  if redis.call('EXISTS', events) == 0 then return 0 end
  local about = redis.call('XINFO', 'STREAM', events)
  for i = 1, #about, 2 do
    if about[i] == 'last-generated-id' then return tonumber(string.match(about[i + 1], '^%d+')) end
  end
end

local function hand_in(events, first)
  local last = last_of(events)
  local reached = last
  for i = first, #ARGV, 2 do
    local seq = tonumber(ARGV[i])
    if seq > reached + 1 then return {{{GAP}, reached}} end
    if seq == reached + 1 then reached = seq end
  end
  reached = last
  for i = first, #ARGV, 2 do
    if tonumber(ARGV[i]) == reached + 1 then
      redis.call('XADD', events, ARGV[i] .. '-0', 'm', ARGV[i + 1])
      reached = reached + 1
    end
  end
  return {{1, reached}}
end
"""

CREATE = Script(
    _NOW
    + """
if redis.call('HSETNX', KEYS[1], 'record', ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[2], 'status', 'queued', 'since', now(), 'fence', '0')
return 1
"""
)
"""KEYS record, state; ARGV record. 0: the name is taken."""

ACQUIRE = Script(
    _NOW
    + _RUN
    + f"""
local status = status_of(KEYS[1])
if not status then return {{{UNKNOWN}, 0}} end
if final[status] and ARGV[3] == '0' then return {{{FINISHED}, 0}} end
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] then return {{{HELD}, 0}} end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
if holder then
  if final[status] then set_status(KEYS[1], 'running') end
  return {{1, newest(KEYS[1])}}
end
set_status(KEYS[1], 'running')
return {{1, redis.call('HINCRBY', KEYS[1], 'fence', 1)}}
"""
)
"""KEYS state, lease; ARGV owner, ttl (ms), reopen (0 or 1)."""

RENEW = Script(
    _RUN.replace("now()", "'0'")
    + f"""
if tonumber(ARGV[2]) < 1 or newest(KEYS[1]) ~= tonumber(ARGV[2]) then return {FENCED} end
if final[status_of(KEYS[1])] then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3])
return 1
"""
)
"""KEYS state, lease; ARGV owner, fence, ttl (ms). A run that has ended is not held again by a late renewal."""

MARK = Script(
    _NOW
    + _RUN
    + f"""
if not status_of(KEYS[1]) then return {UNKNOWN} end
if newest(KEYS[1]) ~= tonumber(ARGV[1]) then return {FENCED} end
set_status(KEYS[1], ARGV[2])
return 1
"""
)
"""KEYS state; ARGV fence, status."""

APPEND = Script(
    _NOW
    + _RUN
    + _HAND_IN
    + f"""
if newest(KEYS[1]) ~= tonumber(ARGV[1]) then return {{{FENCED}, newest(KEYS[1])}} end
return hand_in(KEYS[2], 2)
"""
)
"""KEYS state, events; ARGV fence, then seq and bytes in turn. All or nothing."""

LAST = Script(_HAND_IN + "return last_of(KEYS[1])")
"""KEYS events. Not the last entry: after a trim there may be none."""

FINISH = Script(
    _NOW
    + _RUN
    + _HAND_IN
    + f"""
if not status_of(KEYS[1]) then return {{{UNKNOWN}, 0}} end
if newest(KEYS[1]) ~= tonumber(ARGV[1]) then return {{{FENCED}, newest(KEYS[1])}} end
local answer = hand_in(KEYS[2], 3)
if answer[1] < 0 then return answer end
set_status(KEYS[1], ARGV[2])
redis.call('DEL', KEYS[3])
return answer
"""
)
"""KEYS state, events, lease; ARGV fence, status, then seq and bytes in turn."""

SEND = Script(
    _NOW
    + """
if redis.call('ZADD', KEYS[2], 'NX', now(), ARGV[1]) == 0 then return 0 end
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -ARGV[3] - 1)
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[3], '*', 'm', ARGV[2])
return 1
"""
)
"""KEYS commands, ids; ARGV id, bytes, guard. 0: a command with this id is in the line."""

ACCEPT = Script(
    _NOW
    + """
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now() - ARGV[3])
if redis.call('ZADD', KEYS[2], 'NX', now(), ARGV[1]) == 0 then return 0 end
redis.call('XADD', KEYS[1], '*', 'id', ARGV[1], 'm', ARGV[2])
return 1
"""
)
"""KEYS items, ids; ARGV id, bytes, how long an id is remembered (ms). 0: the id is known."""

# The id stays known: an accept that was sent earlier and arrives only now finds it and adds nothing.
WITHDRAW = Script(
    _NOW
    + """
redis.call('ZADD', KEYS[2], now(), ARGV[1])
for _, item in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do
  if item[2][2] == ARGV[1] then redis.call('XDEL', KEYS[1], item[1]) end
end
return 1
"""
)
"""KEYS items, ids; ARGV id."""

GROUP = Script("""
local made = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
if type(made) == 'table' and made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then return made end
return 1
""")
"""KEYS items; ARGV group. From the start: what stands in the stream is not done (RD-4)."""

SAVE = Script("""
local kept = redis.call('HGET', KEYS[1], 'seq')
if kept and tonumber(kept) > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'seq', ARGV[1], 'version', ARGV[2], 'data', ARGV[3])
for i = 4, #ARGV do redis.call('HDEL', KEYS[2], ARGV[i]) end
return 1
""")
"""KEYS view, slots; ARGV seq, version, data, then names of slots to forget."""

LEAD = Script("""
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
""")
"""KEYS lead; ARGV owner, ttl (ms)."""

LEAVE = Script("""
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
""")
"""KEYS lead; ARGV owner."""

LIVEN = Script(_NOW + "return redis.call('ZADD', KEYS[1], now(), ARGV[1])")
"""KEYS live; ARGV run. It is started now."""

BURY = Script("""
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '-1') ~= tonumber(ARGV[2]) then return 0 end
return redis.call('ZREM', KEYS[1], ARGV[1])
""")
"""KEYS live; ARGV run, score. Not if it was started again meanwhile."""

EVERY = (
    *(CREATE, ACQUIRE, RENEW, MARK, APPEND, LAST, FINISH, LEAD, LEAVE, LIVEN, BURY),
    *(SEND, ACCEPT, WITHDRAW, GROUP, SAVE),
)
