"""How full the main thread's context is, from generation to generation of one step. Pure (behaviour 16.1)."""

from __future__ import annotations

from dataclasses import dataclass

from flower.core.agent import HandoffPolicy


@dataclass(slots=True)
class Level:
    """The high-water mark of the living generation, and whether people were warned of it."""

    policy: HandoffPolicy
    tokens: int = 0
    warned: bool = False

    def rise(self, context: int) -> bool:
        """Take a reading; whether it is the one of this generation that people are told of."""
        self.tokens = max(self.tokens, context)
        if not self.policy.enabled or self.warned or self.tokens < self.policy.warn_at:
            return False
        self.warned = True
        return True

    @property
    def due(self) -> bool:
        """Whether the session is to be handed over."""
        return self.policy.enabled and self.tokens >= self.policy.at

    def reset(self) -> None:
        """A new generation begins with an empty context."""
        self.tokens, self.warned = 0, False
