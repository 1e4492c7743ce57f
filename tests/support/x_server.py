"""An X server without a screen, typed into with a keyboard's reports, and a window that reads as programs do."""

from __future__ import annotations

import ctypes
import locale
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from Xlib import X, display
from Xlib.ext import xtest

_LINUX = (
    30, 48, 46, 32, 18, 33, 34, 35, 23, 36, 37, 38, 50, 49, 24, 25, 16, 19, 31, 20, 22, 47, 17, 45, 21, 44,
    2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 28, 1, 14, 15, 57, 12, 13, 26, 27, 43, 43, 39, 40, 41, 51, 52, 53,
)  # fmt: skip
"""Keys of Linux for the usages from 04 on, as its drivers have them (drivers/hid/hid-input.c)."""
_KEYS = {4 + at: key + 8 for at, key in enumerate(_LINUX)} | {0x64: 86 + 8}
_MODIFIERS = (37, 50, 64, 133, 105, 62, 108, 134)
"""Left and right Ctrl, Shift, Alt and Super, in the order of their bits, as keys of X."""
ESCAPE = 0x29
_IM_NOTHING = 0x0008 | 0x0400
"""XIMPreeditNothing, XIMStatusNothing."""


class _Event(ctypes.Union):
    _fields_ = [("type", ctypes.c_int), ("pad", ctypes.c_long * 24)]


class XServer:
    """A running server: ``name`` of its display."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._typist = display.Display(name)

    def lay_out(self, layout: str, variant: str) -> None:
        """Give its keyboard a layout of xkb-data."""
        subprocess.run(
            ["setxkbmap", "-display", self.name, "-rules", "evdev", "-model", "pc105", "-layout", layout,
             "-variant", variant], check=True,
        )  # fmt: skip

    def typed(self, reports: Iterable[tuple[Any, ...]]) -> str:
        """The text that a program with the focus reads while the device hands over these reports, then Escape."""
        with _Window(self.name) as window:
            down: set[int] = set()
            for modifiers, usages in [_keyboard(report) for report in reports] + [(0, (ESCAPE,)), (0, ())]:
                wanted = [key for bit, key in enumerate(_MODIFIERS) if modifiers >> bit & 1]
                wanted += [_KEYS[usage] for usage in usages]
                for key in [one for one in down if one not in wanted]:
                    xtest.fake_input(self._typist, X.KeyRelease, key)
                for key in [one for one in wanted if one not in down]:  # modifiers first: they come first in a report
                    xtest.fake_input(self._typist, X.KeyPress, key)
                down = set(wanted)
            self._typist.sync()
            return window.read()

    def close(self) -> None:
        """Let go of it."""
        self._typist.close()


def _keyboard(report: tuple[Any, ...]) -> tuple[int, tuple[int, ...]]:
    """Modifiers and keys that are down with it."""
    return (report[1], report[2]) if report[0] == "keyboard" else (0, ())


class _Window:
    """A window with the focus, which composes what is typed as Xlib's programs do."""

    def __init__(self, name: str) -> None:
        self._x = x = ctypes.CDLL("libX11.so.6")
        for function in ("XOpenDisplay", "XOpenIM", "XCreateIC", "XDefaultRootWindow", "XCreateSimpleWindow"):
            getattr(x, function).restype = ctypes.c_void_p
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
        assert x.XSetLocaleModifiers(b"@im=none")
        self._display = display_ = ctypes.c_void_p(x.XOpenDisplay(name.encode()))
        root = ctypes.c_void_p(x.XDefaultRootWindow(display_))
        self._window = window = ctypes.c_void_p(x.XCreateSimpleWindow(display_, root, 0, 0, 9, 9, 0, 0, 0))
        method = ctypes.c_void_p(x.XOpenIM(display_, None, None, None))
        assert method.value, "no input method"
        self._context = ctypes.c_void_p(x.XCreateIC(
            method, b"inputStyle", ctypes.c_long(_IM_NOTHING), b"clientWindow", window, None
        ))  # fmt: skip
        assert self._context.value, "no input context"
        x.XSelectInput(display_, window, ctypes.c_long(X.KeyPressMask | X.StructureNotifyMask))
        x.XMapWindow(display_, window)
        while self._next() != X.MapNotify:
            pass
        x.XSetInputFocus(display_, window, X.RevertToParent, X.CurrentTime)
        x.XSetICFocus(self._context)
        x.XSync(display_, 0)
        self._event = _Event()

    def _next(self) -> int:
        event = self._event = _Event()
        self._x.XNextEvent(self._display, ctypes.byref(event))
        return int(event.type)

    def read(self) -> str:
        """All that was typed, until the key Escape."""
        text = ""
        while True:
            kind = self._next()
            if self._x.XFilterEvent(ctypes.byref(self._event), None) or kind != X.KeyPress:
                continue
            raw, symbol, status = ctypes.create_string_buffer(64), ctypes.c_ulong(), ctypes.c_int()
            size = self._x.Xutf8LookupString(
                self._context, ctypes.byref(self._event), raw, 63, ctypes.byref(symbol), ctypes.byref(status)
            )
            if symbol.value == 0xFF1B:
                return text
            text += raw.raw[:size].decode().replace("\r", "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._x.XCloseDisplay(self._display)


@contextmanager
def x_server() -> Iterator[XServer]:
    """A server on a free display."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "64x64x24", "-nolisten", "tcp", "-noreset"]
    process = subprocess.Popen(command, pass_fds=(writing,), stderr=subprocess.DEVNULL)
    os.close(writing)
    try:
        with open(reading) as told:
            number = told.readline().strip()
        server = XServer(f":{number}")
        try:
            yield server
        finally:
            server.close()
    finally:
        process.terminate()
        process.wait()
