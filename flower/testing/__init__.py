"""Offline tests of workflows: a scripted model, a recording sink, and a driver. Needs the extra `testing`.

story = read_story({"parts": {"main": {"lines": ["Hello.", "Good-bye."]}}})
async with ScriptedModel(story) as model:
    with scripted_surroundings(model, home):
        ...  # run flower, or the SDK itself; the real bundled program talks to the scripted model
"""

try:
    from flower.testing.driver import Played, StillWaitingError, UnansweredError, play
    from flower.testing.environment import inherited, scripted_env, scripted_surroundings
    from flower.testing.hearing import Asked, Failure, StoryFailedError, same_session
    from flower.testing.server import PortTakenError, ScriptedModel
    from flower.testing.sink import RecordingSink
    from flower.testing.story import Call, Condition, Fault, Line, Part, Pattern, Story, StoryError, Usage
    from flower.testing.story_file import load_story, parse_story, read_story
    from flower.testing.tokens import PRICES, Price, TokenEntry, cost, read_log
except ModuleNotFoundError as err:
    if err.name not in ("aiohttp", "yaml"):
        raise
    # In the package's own name `python -m flower.testing` prints it as one line, without a traceback.
    raise ModuleNotFoundError(
        f"flower.testing needs the package {err.name}; in a clone: pip install '.[testing]'", name=__name__
    ) from err

__all__ = [
    "PRICES",
    "Asked",
    "Call",
    "Condition",
    "Failure",
    "Fault",
    "Line",
    "Part",
    "Pattern",
    "Played",
    "PortTakenError",
    "Price",
    "RecordingSink",
    "ScriptedModel",
    "StillWaitingError",
    "Story",
    "StoryError",
    "StoryFailedError",
    "TokenEntry",
    "UnansweredError",
    "Usage",
    "cost",
    "inherited",
    "load_story",
    "parse_story",
    "play",
    "read_log",
    "read_story",
    "same_session",
    "scripted_env",
    "scripted_surroundings",
]
