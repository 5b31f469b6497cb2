"""The five rule texts as constants: the `zh` entries of the catalogue (rulings R7)."""

from __future__ import annotations

from flower.texts.rules import ZH

COORDINATOR_RULES = ZH.coordinator
WORKER_RULES = ZH.worker
CLARIFIER_RULES = ZH.clarifier
JUDGE_RULES = ZH.judge
ORACLE_RULES = ZH.oracle
