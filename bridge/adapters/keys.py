"""Every Redis key, made here and nowhere else (house style 29).

Keys of one run share the hash tag `{run}`, so that a script over them works on a cluster too. `P` is the prefix.
*Bot* is every process with the administrator's user, *runner* the one with the run's own user (rulings R8).

| key | type | holds | who writes | who reads | how it ends |
| --- | --- | --- | --- | --- | --- |
| `P:run:{R}:events` | stream | `m` = news; ids are `<seq>-0` | runner, bot | bot, runner | trimmed |
| `P:run:{R}:state` | hash | `status`, `since` (ms), `fence` | runner, bot | bot, runner | stays with the run |
| `P:run:{R}:lease` | string | owner | runner, bot | bot, runner | by its own time, or given up at the end |
| `P:run:{R}:commands` | stream | `m` = command | bot | runner, bot | guard at 10,000 entries; stays with the run |
| `P:run:{R}:command-ids` | zset | command id, by time (ms) | bot | bot | the newest 10,000 |
| `P:run:{R}:record` | hash | `record`; `platform`, `thread` once it is bound | bot | bot, runner | stays with the run |
| `P:run:{R}:view` | hash | `seq`, `version`, `data` of the checkpoint | bot | bot | replaced; stays with the run |
| `P:run:{R}:slots` | hash | slot name -> what was posted | bot | bot | slots are forgotten with a checkpoint |
| `P:run:{R}:user` | string | SHA-256 of the password of the runner's user | bot | bot | with `revoke` |
| `P:run:{R}:asks` | hash | ask -> how it was settled | bot | bot | stays with the run |
| `P:bell:0` … `P:bell:15` | stream | `r` = run that has news | runner, bot | bot | about the newest 10,000 rings |
| `P:runs` | zset | run, by creation (s) | bot | bot | stays |
| `P:live` | zset | run that may be live, by its last start (ms) | bot | bot | an hour later, if the run has ended |
| `P:thread:<platform>:<key>` | string | run | bot | bot | stays: a thread never outlives its link (ST-5) |
| `P:lead:<account>` | string | owner | bot | bot | by its own time, or given up |
| `P:inbox:{<platform>}:items` | stream | `id`, `m` = inbound | bot | bot | an entry goes when it is done |
| `P:inbox:{<platform>}:ids` | zset | inbound id, by time (ms) | bot | bot | after seven days |
| `P:inbox:{<platform>}:dead` | stream | `m`, `why`: what could not be read | bot | people | about the newest 1,000 |

Runs stay until somebody removes them: their number is the number of threads that still take replies.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

from bridge.model import Platform, RunId, ThreadRef

BELLS = 16
"""So many shared streams ring for all runs (infra facts 5). Part of the wire: never change it on a living store."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys below one prefix."""

    prefix: str = "flower"

    def events(self, run: RunId) -> str:
        return self._of(run, "events")

    def state(self, run: RunId) -> str:
        return self._of(run, "state")

    def lease(self, run: RunId) -> str:
        return self._of(run, "lease")

    def commands(self, run: RunId) -> str:
        return self._of(run, "commands")

    def command_ids(self, run: RunId) -> str:
        return self._of(run, "command-ids")

    def record(self, run: RunId) -> str:
        return self._of(run, "record")

    def view(self, run: RunId) -> str:
        return self._of(run, "view")

    def slots(self, run: RunId) -> str:
        return self._of(run, "slots")

    def user(self, run: RunId) -> str:
        return self._of(run, "user")

    def asks(self, run: RunId) -> str:
        return self._of(run, "asks")

    def bell(self, run: RunId) -> str:
        return f"{self.prefix}:bell:{crc32(run.encode()) % BELLS}"

    @property
    def bells(self) -> list[str]:
        return [f"{self.prefix}:bell:{number}" for number in range(BELLS)]

    @property
    def runs(self) -> str:
        return f"{self.prefix}:runs"

    @property
    def live(self) -> str:
        return f"{self.prefix}:live"

    def thread(self, thread: ThreadRef) -> str:
        return f"{self.prefix}:thread:{thread.platform}:{thread.key}"

    def lead(self, account: str) -> str:
        return f"{self.prefix}:lead:{account}"

    def inbox(self, platform: Platform) -> str:
        return f"{self.prefix}:inbox:{{{platform}}}:items"

    def inbox_ids(self, platform: Platform) -> str:
        return f"{self.prefix}:inbox:{{{platform}}}:ids"

    def inbox_dead(self, platform: Platform) -> str:
        return f"{self.prefix}:inbox:{{{platform}}}:dead"

    def _of(self, run: RunId, what: str) -> str:
        return f"{self.prefix}:run:{{{run}}}:{what}"
