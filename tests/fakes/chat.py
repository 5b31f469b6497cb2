"""A chat in memory: keeps the contract of `bridge.ports.Chat`, can be asked what stands in it, and fails on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from bridge.errors import ChatError, ChatGoneError, ChatUnknownError
from bridge.model import (
    Abilities,
    Card,
    Inbound,
    MessageRef,
    Person,
    PersonId,
    PlaceRef,
    Platform,
    PostRef,
    Sign,
    Summons,
    Tap,
    ThreadRef,
    Words,
)
from bridge.ports import Accept

FAKE = Platform("fake")
ABILITIES = Abilities(
    post_limit=4_000,
    edit_limit=4_000,
    buttons=27,
    label_limit=30,
    forms=True,
    whispers=True,
    signs=True,
    lookup=True,
    post_every=0.0,
    post_burst=1_000,
    edit_every=0.0,
    edit_burst=1_000,
)
"""Without limits in time: a test that is about pacing gives its own."""

PLACE = PlaceRef(FAKE, "T1/C1")
ANNA = Person(id=PersonId("T1/U1"), name="Anna")
BEN = Person(id=PersonId("T1/U2"), name="Ben")


@dataclass(slots=True)
class FakePost:
    """One post as it stands. `cards` are all that it ever showed, the newest last."""

    ref: PostRef
    once: str
    at: float
    cards: list[Card]

    @property
    def card(self) -> Card:
        return self.cards[-1]


@dataclass(frozen=True, slots=True)
class Whisper:
    where: PlaceRef | ThreadRef
    person: PersonId
    text: str
    private: str


@dataclass(slots=True)
class _Fault:
    error: ChatError
    after: bool
    times: int


@dataclass(slots=True)
class FakeChat:
    """See the module. `now` stamps posts and words; by default it counts up from 1700000000 in steps of a second."""

    abilities: Abilities = ABILITIES
    now: Callable[[], float] = field(default_factory=lambda: _counting())
    platform: Platform = FAKE
    account: str = "fake/T1/U0"
    posts: list[FakePost] = field(default_factory=list)
    whispers: list[Whisper] = field(default_factory=list)
    signs: list[tuple[MessageRef, Sign]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    """Names of the methods that were called, in order, the failed ones included."""
    _faults: dict[str, list[_Fault]] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)
    _accept: Accept | None = None
    _listening: asyncio.Event = field(default_factory=asyncio.Event)
    _order: asyncio.Lock = field(default_factory=asyncio.Lock)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _numbers: count[int] = field(default_factory=lambda: count(1))

    # -- what a test brings about

    def fail(self, method: str, error: ChatError, *, after: bool = False, times: int = 1) -> None:
        """Let the next calls of a method raise: before anything happened, or `after` it has."""
        self._faults.setdefault(method, []).append(_Fault(error, after, times))

    def lose_answer(self, method: str = "post", *, times: int = 1) -> None:
        """Let the next calls take effect and their answers get lost."""
        self.fail(method, ChatUnknownError(f"{method}: the answer was lost"), after=True, times=times)

    def archive(self, place: PlaceRef) -> None:
        """Let nothing be posted in a place any more."""
        self._gone.add(place.key)

    # -- what people do; each returns what `accept` returned

    async def deliver(self, inbound: Inbound) -> bool:
        """Deliver something, again if it was delivered before. Waits until somebody listens."""
        await self._listening.wait()
        async with self._order:
            assert self._accept is not None
            return await self._accept(inbound)

    async def summon(self, text: str, *, author: Person = ANNA, place: PlaceRef = PLACE) -> bool:
        number = next(self._numbers)
        key = f"{place.key}/command/{number}"
        return await self.deliver(
            Summons(id=key, place=place, author=author, text=text, at=self.now(), private=f"private-{number}")
        )

    async def say(self, thread: ThreadRef, text: str, *, author: Person = ANNA, mentions_us: bool = False) -> Words:
        """Say something in a thread; returns the words, whose `message` receipts are put on."""
        key = f"{thread.key}/words/{next(self._numbers)}"
        words = Words(
            id=key,
            thread=thread,
            message=MessageRef(thread, key),
            author=author,
            text=text,
            at=self.now(),
            mentions_us=mentions_us,
        )
        await self.deliver(words)
        return words

    async def tap(self, post: FakePost, label: str, *, author: Person = ANNA, text: str = "") -> bool:
        """Press a button by its label as the post stands now, or send its form with `text`.

        Raises:
            LookupError: the post has no such button; names those that it has.
        """
        found = [button for button in post.card.buttons if button.label == label]
        if not found:
            raise LookupError(f"no button {label!r}; there are {[button.label for button in post.card.buttons]}")
        return await self.press(post, found[0].action, author=author, text=text)

    async def press(self, post: FakePost, action: str, *, author: Person = ANNA, text: str = "") -> bool:
        """Press a button by its action, also one that does not stand there any more."""
        key = f"{post.ref.key}/{author.id}/{next(self._numbers)}"
        return await self.deliver(
            Tap(id=key, thread=post.ref.thread, author=author, action=action, text=text, at=self.now())
        )

    # -- what a test looks at

    def thread(self, thread: ThreadRef) -> list[FakePost]:
        """Return the posts of a thread, its root first."""
        return [post for post in self.posts if post.ref.thread == thread]

    def roots(self) -> list[FakePost]:
        """Return the posts that opened a thread."""
        return [post for post in self.posts if post.ref.key == post.ref.thread.key]

    async def until(self, condition: Callable[[FakeChat], object], *, within: float = 5.0) -> None:
        """Wait until something is so, looking again after every post, edit, whisper and sign."""
        async with asyncio.timeout(within), self._changed:
            await self._changed.wait_for(lambda: bool(condition(self)))

    # -- the port

    async def listen(self, accept: Accept) -> None:
        self._accept = accept
        self._listening.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._accept = None
            self._listening.clear()

    async def post(self, where: PlaceRef | ThreadRef, card: Card, *, once: str) -> tuple[PostRef, float]:
        fault = self._called("post")
        self._check(where)
        key = f"{_place_key(where)}/{next(self._numbers)}"
        thread = where if isinstance(where, ThreadRef) else ThreadRef(self.platform, key)
        post = FakePost(PostRef(thread, key), once, self.now(), [card])
        self.posts.append(post)
        await self._tell()
        _raise(fault)
        return post.ref, post.at

    async def find(self, where: PlaceRef | ThreadRef, once: str, *, since: float) -> tuple[PostRef, float] | None:
        fault = self._called("find")
        for post in self.posts:
            here = post.ref.thread == where if isinstance(where, ThreadRef) else _is_root_in(post, where)
            if here and post.once == once and post.at >= since:
                _raise(fault)
                return post.ref, post.at
        _raise(fault)
        return None

    async def edit(self, post: PostRef, card: Card, *, once: str) -> None:
        fault = self._called("edit")
        self._check(post.thread)
        found = next((each for each in self.posts if each.ref == post and each.once == once), None)
        if found is None:
            raise ChatGoneError(f"no post {post.key} under {once}")
        found.cards.append(card)
        await self._tell()
        _raise(fault)

    async def whisper(self, where: PlaceRef | ThreadRef, person: PersonId, text: str, *, private: str = "") -> None:
        fault = self._called("whisper")
        self.whispers.append(Whisper(where, person, text, private))
        await self._tell()
        _raise(fault)

    async def sign(self, message: MessageRef, sign: Sign) -> None:
        fault = self._called("sign")
        if (message, sign) not in self.signs:
            self.signs.append((message, sign))
        await self._tell()
        _raise(fault)

    def link(self, post: PostRef) -> str:
        return f"https://chat.example/{post.key}"

    def _called(self, method: str) -> ChatError | None:
        """Note a call; raises what should fail before it, returns what should fail behind it."""
        self.calls.append(method)
        waiting = self._faults.get(method)
        if not waiting:
            return None
        fault = waiting[0]
        fault.times -= 1
        if fault.times <= 0:
            waiting.pop(0)
        if not fault.after:
            raise fault.error
        return fault.error

    def _check(self, where: PlaceRef | ThreadRef) -> None:
        if _place_key(where) in self._gone:
            raise ChatGoneError("the channel is archived")

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _counting() -> Callable[[], float]:
    seconds = count(1_700_000_000)
    return lambda: float(next(seconds))


def _place_key(where: PlaceRef | ThreadRef) -> str:
    return "/".join(where.key.split("/")[:2])


def _is_root_in(post: FakePost, place: PlaceRef) -> bool:
    return post.ref.key == post.ref.thread.key and _place_key(post.ref.thread) == place.key


def _raise(error: ChatError | None) -> None:
    if error is not None:
        raise error
