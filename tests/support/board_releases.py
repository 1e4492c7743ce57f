"""Stand-ins for the builds of CircuitPython, and ways to take something from a board's modules."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec

CONSOLE, FILES, SETTINGS, PINS, USB, MEMORY, WATCHDOG, OTHER = range(1, 9)
"""The flashes of each part that can fail, as firmware/README.md has them."""
Spoil = Callable[[dict[str, Any]], None]


class Port(msgspec.Struct, frozen=True, kw_only=True):
    """A build: the algorithms of its ``hashlib`` (None: no module), and what else it has."""

    algorithms: tuple[str, ...] | None
    watchdog: bool = True
    usb: bool = True
    getenv: bool = True
    pins: bool = True
    flashes: int = 0

    def spoil(self, modules: dict[str, Any]) -> None:
        """Make of the modules what this build has."""
        modules["hashlib"] = None if self.algorithms is None else hashes(*self.algorithms)
        if not self.watchdog:
            modules["watchdog"] = modules["microcontroller"].watchdog = None
        if not self.usb:
            modules["usb_hid"] = modules["usb_cdc"] = modules["usb_midi"] = None
        if not self.getenv:
            modules["os"] = without(modules_os(), "getenv")
        if not self.pins:
            modules["board"] = SimpleNamespace(D2="D2", LED="LED")


def hashes(*algorithms: str) -> Any:
    """A ``hashlib`` as CircuitPython has it: ``new`` alone, and it knows these."""

    def new(name: str, data: bytes = b"") -> Any:
        if name not in algorithms:
            raise ValueError("Unsupported hash algorithm")
        return hashlib.new(name, data)

    return SimpleNamespace(new=new)


def modules_os() -> Any:
    """``os`` with what the programs use."""
    return SimpleNamespace(getenv=os.getenv, urandom=os.urandom)


def without(module: Any, name: str) -> Any:
    """A module that lacks something."""
    lacking = ModuleType("lacking")
    vars(lacking).update({key: value for key, value in vars(module).items() if key != name})
    return lacking


SHA1, BOTH = ("sha1",), ("sha1", "sha256")
PORTS: dict[str, dict[str, Port]] = {
    "raspberrypi": {
        **{release: Port(algorithms=SHA1) for release in ("9.0", "9.1", "9.2", "10.0")},
        "10.1": Port(algorithms=SHA1), "10.1 with SHA-256": Port(algorithms=BOTH),
    },
    "espressif": {
        **{release: Port(algorithms=SHA1) for release in ("9.0", "9.1", "9.2", "10.0", "10.1")},
        "9.2 without USB": Port(algorithms=SHA1, usb=False, flashes=USB),
    },
    "nordic": {
        **{release: Port(algorithms=None) for release in ("9.0", "9.1", "9.2", "10.0")},
        "10.1": Port(algorithms=BOTH),
    },
    "atmel-samd": {
        "9.0": Port(algorithms=None), "9.2": Port(algorithms=None), "10.1": Port(algorithms=None),
        "9.2 without a watchdog": Port(algorithms=None, watchdog=False, flashes=WATCHDOG),
        "9.2 of the small chip": Port(algorithms=None, watchdog=False, getenv=False, flashes=SETTINGS),
        "9.2 with other pins": Port(algorithms=None, pins=False, flashes=PINS),
    },
}  # fmt: skip
BUILDS = {f"{name} {release}": port for name, ports in PORTS.items() for release, port in ports.items()}


def raising(error: Exception) -> Any:
    """Something that raises when it is called."""

    def call(*_: Any, **__: Any) -> Any:
        raise error

    return call


def gone(name: str) -> Spoil:
    """The module is missing."""
    return lambda modules: modules.update({name: None})


def lacks(name: str, part: str, **more: Any) -> Spoil:
    """It lacks this, and has ``more``."""

    def spoil(modules: dict[str, Any]) -> None:
        modules[name] = without(modules[name], part)
        vars(modules[name]).update(more)

    return spoil


def raises(name: str, part: str) -> Spoil:
    """This raises, when it is called or written."""
    return lambda modules: setattr(modules[name], part, raising(RuntimeError("not here")))


class Refusing:
    """Has one part that cannot be read or written, and is else as another."""

    def __init__(self, whole: Any, part: str, *, reads: bool = True) -> None:
        object.__setattr__(self, "_whole", whole)
        object.__setattr__(self, "_part", part)
        object.__setattr__(self, "_reads", reads)

    def __getattr__(self, name: str) -> Any:
        if name == self._part and not self._reads:
            raise RuntimeError(f"{name} cannot be read")
        return getattr(self._whole, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == self._part:
            raise ValueError(f"{name} cannot be set")
        setattr(self._whole, name, value)


class Memory:
    """A lasting memory: ``bytes`` of it; it may refuse to be written, or forget."""

    def __init__(self, size: int = 8, *, refuses: bool = False, forgets: bool = False) -> None:
        self._bytes, self._refuses, self._forgets = bytearray(size), refuses, forgets

    def __getitem__(self, at: int) -> int:
        return self._bytes[at]

    def __setitem__(self, at: int, value: int) -> None:
        if self._refuses:
            raise RuntimeError("the memory cannot be written")
        self._bytes[at] = 0 if self._forgets else value


def holds(name: str, part: str, value: Any) -> Spoil:
    """The module has this instead."""
    return lambda modules: setattr(modules[name], part, value)


def one_pin(taken: str) -> Spoil:
    """All pins but this one are in use."""

    def spoil(modules: dict[str, Any]) -> None:
        whole = modules["digitalio"].DigitalInOut

        def take(name: str) -> Any:
            if name != taken:
                raise ValueError(f"{name} in use")
            return whole(name)

        modules["digitalio"].DigitalInOut = take

    return spoil


def refuses(name: str, part: str, inner: str, *, reads: bool = True) -> Spoil:
    """A part of a part cannot be set, or not even read."""
    return lambda modules: setattr(modules[name], part, Refusing(getattr(modules[name], part), inner, reads=reads))
