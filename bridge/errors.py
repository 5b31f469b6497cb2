"""What can go wrong between a run and a thread.

BridgeError
  ChatError             the platform said no
    ChatBusyError       later: see retry_after
    ChatRefusedError    this card never, a plainer one perhaps: too long, malformed
    ChatGoneError       nothing more here: channel archived, bot removed, thread deleted, token revoked
    ChatUnknownError    the answer was lost: it may have happened, look before you repeat
  StateError            the state store
    StoreAwayError      Redis cannot be reached, or did not answer in time
    StoreRefusedError   Redis answers, and says no: wrong password, missing right, too old a server
    BadMessageError     bytes that no version of the wire explains
  LeaseError            who runs the run
    FencedError         a newer attempt owns the run; write nothing more
    HeldError           another runner holds it
    FinishedError       the run has ended; it takes a *continue*
  LaunchError           a runner could not be started
  SettingsError         a setting is missing or wrong: says where, what was expected, and the cure
"""

from __future__ import annotations


class BridgeError(Exception):
    """Base of all errors of the bridge."""


class ChatError(BridgeError):
    """The platform said no."""


class ChatBusyError(ChatError):
    """Try again after `retry_after` seconds."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ChatRefusedError(ChatError):
    """This card is never taken; a plainer or shorter one perhaps."""


class ChatGoneError(ChatError):
    """Nothing more can be posted here."""


class ChatUnknownError(ChatError):
    """No answer came: the call may have taken effect. Look (`Chat.find`) before repeating a post."""


class StateError(BridgeError):
    """Something about the state store."""


class StoreAwayError(StateError):
    """The state store cannot be reached or did not answer in time."""


class StoreRefusedError(StateError):
    """The state store answers and refuses: password, rights, version."""


class BadMessageError(StateError):
    """Bytes that no version of the wire explains."""


class LeaseError(BridgeError):
    """Who runs the run."""


class FencedError(LeaseError):
    """A newer attempt owns the run."""


class HeldError(LeaseError):
    """Another live runner holds the run."""


class FinishedError(LeaseError):
    """The run has a final status."""


class LaunchError(BridgeError):
    """A runner could not be started."""


class SettingsError(BridgeError):
    """A setting is missing or wrong."""
