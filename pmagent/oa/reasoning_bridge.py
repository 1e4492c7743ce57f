"""The reasoning bridge: its types, and values that nobody can change any more (docs/design.md §13.1).

The types are those of ``pmagent.contracts.reasoning``. Their attributes cannot be set, but the dicts and lists in them
could be changed by whoever holds them. ``checked_envelope`` and ``checked_result`` let in only what keeps its contract,
and copy all of it into ``FrozenDict`` and ``FrozenList``: neither the program nor whoever built the envelope can alter
it later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn, Self, TypeVar

import msgspec

from pmagent.contracts.oa_documents import Document, OADiagnostic
from pmagent.contracts.reasoning import (
    DEPTH_MAX,
    PAYLOADS,
    PROGRAM_IDS,
    PROGRAM_TOOLS,
    GuardFailureInterpreterResult,
    KernelStateRef,
    OPSBlockGeneratorResult,
    PhaseTransitionValidatorResult,
    ReasoningEnvelope,
    ReasoningResult,
    SafeOPSDecisionResult,
    ShapeError,
    ToolCall,
    check_envelope,
    check_result,
)
from pmagent.events.errors import PmagentError

__all__ = [
    "PAYLOADS", "PROGRAM_IDS", "PROGRAM_TOOLS", "EnvelopeError", "FrozenDict", "FrozenList",
    "GuardFailureInterpreterResult", "KernelStateRef", "OADiagnostic", "OPSBlockGeneratorResult",
    "PhaseTransitionValidatorResult", "ReasoningEnvelope", "ReasoningResult", "ResultError", "SafeOPSDecisionResult",
    "ToolCall", "checked_envelope", "checked_result", "freeze", "new_envelope",
]

FROZEN_DEPTH_MAX: Final = DEPTH_MAX + 8
"""Deepest nesting of what is frozen: the deepest part of an envelope, and the levels above it."""

VALUES_MAX: Final = 10_000_000
"""So many values belong to what is frozen at once; an object that holds itself over and over would never end."""

_KEY_SHOWN_CHARS: Final = 60

D = TypeVar("D", bound=Document)


class EnvelopeError(PmagentError, ValueError, exit_code=2):
    """The arguments make no envelope, or are none."""


class ResultError(PmagentError, ValueError, exit_code=70):
    """The answer is no result: whoever answered breaks the contract."""


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    kind = "dict" if isinstance(self, dict) else "list"
    raise TypeError(f"this {kind} is frozen: take a copy with {kind}(…) and change that")


class FrozenDict(dict[str, Any]):
    """A dict that cannot be changed, and whose values cannot either; equal to, and encoded as, the plain dict.

    Raises TypeError for every change; ShapeError when it is made of what is not JSON.
    """

    __slots__ = ()

    def __new__(cls, content: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), /) -> Self:
        """The content, copied and frozen."""
        self = super().__new__(cls)
        _Freezer().fill_dict(self, dict(content))
        return self

    def __init__(self, *_: object) -> None:
        """Nothing: what it holds was put in when it was made, and calling this again must not change it."""

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, Any]]]:
        return type(self), (dict(self),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    __setitem__ = __delitem__ = __ior__ = __setattr__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


class FrozenList(list[Any]):
    """A list that cannot be changed, and whose items cannot either; equal to, and encoded as, the plain list.

    Raises TypeError for every change; ShapeError when it is made of what is not JSON.
    """

    __slots__ = ()

    def __new__(cls, content: Iterable[Any] = (), /) -> Self:
        """The content, copied and frozen."""
        self = super().__new__(cls)
        _Freezer().fill_list(self, list(content))
        return self

    def __init__(self, *_: object) -> None:
        """Nothing: what it holds was put in when it was made, and calling this again must not change it."""

    def __reduce__(self) -> tuple[type[Self], tuple[list[Any]]]:
        return type(self), (list(self),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    __setitem__ = __delitem__ = __iadd__ = __imul__ = __setattr__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse


class _Freezer:
    """One freezing; counts the values that it meets. ``trusting``: what is frozen already is taken as it is; else it is
    copied like anything else, for ``dict.__setitem__`` gets into a frozen dict, too."""

    __slots__ = ("left", "trusting")

    def __init__(self, trusting: bool = True) -> None:
        self.left = VALUES_MAX
        self.trusting = trusting

    def frozen(self, value: object, depth: int) -> Any:
        """The value as plain JSON that cannot be changed. Raises _NotJson."""
        self.left -= 1
        if self.left < 0:
            raise _NotJson(f"holds more than {VALUES_MAX} values")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return _text(value)
        if isinstance(value, int):
            return value if type(value) is int else int(value)
        if isinstance(value, float):
            if not math.isfinite(value):
                raise _NotJson("is not a number that JSON has")
            return value if type(value) is float else float(value)
        if self.trusting and (type(value) is FrozenDict or type(value) is FrozenList):
            return value
        return self._container(value, depth + 1)

    def _container(self, value: object, depth: int) -> Any:
        if depth > FROZEN_DEPTH_MAX:
            raise _NotJson(f"is nested deeper than {FROZEN_DEPTH_MAX}")
        if isinstance(value, Document):
            return type(value)(**{name: self._field(value, name, depth) for name in value.__struct_fields__})
        if isinstance(value, Mapping):
            made = dict.__new__(FrozenDict)
            self.fill_dict(made, dict(value), depth)
            return made
        if isinstance(value, list | tuple):
            listed = list.__new__(FrozenList)
            self.fill_list(listed, value, depth)
            return listed
        raise _NotJson(f"is not JSON ({type(value).__name__})")

    def _field(self, document: Document, name: str, depth: int) -> Any:
        try:
            return self.frozen(getattr(document, name), depth)
        except _NotJson as error:
            error.within(f".{name}")
            raise

    def fill_dict(self, target: dict[str, Any], content: Mapping[Any, Any], depth: int = 1) -> None:
        """Put the frozen content into a dict that is being made."""
        for key, value in content.items():
            if not isinstance(key, str):
                raise _NotJson(f"has a key that is not text ({type(key).__name__})")
            try:
                dict.__setitem__(target, _text(key), self.frozen(value, depth))
            except _NotJson as error:
                error.within(f".{key[:_KEY_SHOWN_CHARS]}")
                raise

    def fill_list(self, target: list[Any], content: Iterable[Any], depth: int = 1) -> None:
        """Put the frozen content into a list that is being made."""
        for number, value in enumerate(content):
            try:
                list.append(target, self.frozen(value, depth))
            except _NotJson as error:
                error.within(f"[{number}]")
                raise


class _NotJson(ShapeError):
    """A value that cannot be frozen; its text grows by the way to it while the error rises."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.way: list[str] = []

    def within(self, step: str) -> None:
        """It lies one step further down than was known."""
        self.way.append(step)

    def __str__(self) -> str:
        way = "".join(reversed(self.way[-8:])).lstrip(".")
        return f"{way or 'the value'} {self.what}".encode("utf-8", "replace").decode()


def _text(value: str) -> str:
    """The text, as a plain one. Raises _NotJson for one that no encoding has."""
    text = value if type(value) is str else str.__str__(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _NotJson("is not text that JSON can hold (a lone surrogate)") from None
    return text


def freeze(value: object) -> Any:
    """``value`` copied, so that nothing in it can be changed any more and later changes of the original do not show.

    dict and other mappings become ``FrozenDict``, list and tuple ``FrozenList``, a document the same document of frozen
    fields. Raises ShapeError, which says where: what is not JSON, is nested too deeply, or is too much.
    """
    return _Freezer().frozen(value, 0)


def checked_envelope(given: Mapping[str, Any] | ReasoningEnvelope) -> ReasoningEnvelope:
    """The envelope, frozen, if ``given`` keeps the contract. Raises EnvelopeError."""
    return _envelope(given, "this is no envelope", "pmagent.oa.reasoning.build_envelope makes one")


def new_envelope(fields: Mapping[str, Any]) -> ReasoningEnvelope:
    """An envelope of these fields, frozen. Raises EnvelopeError, for whoever gave them."""
    return _envelope(fields, "no envelope can be made of this", "correct it, or leave out what does not matter")


def _envelope(given: Mapping[str, Any] | ReasoningEnvelope, wrong: str, mend: str) -> ReasoningEnvelope:
    try:
        return check_envelope(_checked(given, ReasoningEnvelope))
    except (msgspec.ValidationError, ShapeError) as error:
        raise EnvelopeError(f"{wrong}: {error}", mend) from error


def checked_result(given: Mapping[str, Any] | ReasoningResult) -> ReasoningResult:
    """The result, frozen, if ``given`` keeps the contract. Raises ResultError."""
    try:
        return check_result(_checked(given, ReasoningResult))
    except (msgspec.ValidationError, ShapeError) as error:
        raise ResultError(f"this is no result: {error}", "is the daemon of another version? restart it") from error


def _checked(given: object, kind: type[D]) -> D:
    """``given`` as a frozen ``kind``. Raises msgspec.ValidationError, ShapeError."""
    if not isinstance(given, Mapping | kind):
        raise ShapeError(f"a {type(given).__name__} is neither a {kind.__name__} nor a mapping of its fields")
    # One that was put together by hand is looked at like any other.
    plain = msgspec.to_builtins(_Freezer(trusting=False).frozen(given, 0))
    made: D = freeze(msgspec.convert(plain, kind))
    return made
