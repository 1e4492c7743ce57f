"""JSON, as strictly as a device needs it: compact ASCII, no key twice, bounded depth (docs/hid-protocol.md).

The ``json`` of MicroPython takes commas for spaces, keeps the last of two equal keys, and writes keys in any order;
what is approved and hashed byte for byte cannot rest on it.
"""

DEPTH_MAX = 6
DIGITS_MAX = 9
"""An integer of so many digits is a small one on every board. No field needs more."""

_ESCAPES = {0x22: '"', 0x5C: "\\", 0x2F: "/", 0x62: "\b", 0x66: "\f", 0x6E: "\n", 0x72: "\r", 0x74: "\t"}
_HEX = b"0123456789abcdefABCDEF"
_QUOTE, _BACKSLASH, _MINUS, _DOT, _ZERO = 0x22, 0x5C, 0x2D, 0x2E, 0x30


class Unreadable(ValueError):
    """The bytes are no such JSON."""


def read(data: bytes) -> object:
    """The value that ``data`` is the compact JSON of.

    A number that is no integer, or has more than ``DIGITS_MAX`` digits, reads as None, as ``null`` does: no field takes
    either. Raises Unreadable.
    """
    if not data or min(data) < 0x20 or max(data) > 0x7E:
        raise Unreadable("empty, or not printable ASCII")
    reader = _Reader(data)
    value = reader.value(0)
    if reader.at != len(data):
        raise Unreadable("something follows")
    return value


def write(value: object) -> str:
    """The compact JSON of ``value``: keys sorted, ASCII. For actions this is the canonical form that is hashed.

    ``value``: objects and lists of texts, integers and booleans; texts are of printable characters, tab and newline.
    """
    if isinstance(value, str):
        text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        if len(text.encode()) > len(text):
            text = "".join([one if one <= "~" else f"\\u{ord(one):04x}" for one in text])
        return '"' + text + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join([write(key) + ":" + write(value[key]) for key in sorted(value)]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([write(item) for item in value]) + "]"
    raise TypeError("not a value of the line")


class _Reader:
    """A place in ``data``, and the value that begins there."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def value(self, depth: int) -> object:
        if depth > DEPTH_MAX:
            raise Unreadable("too deep")
        byte = self.peek()
        if byte == 0x7B:
            return self.members(depth)
        if byte == 0x5B:
            return self.items(depth)
        if byte == _QUOTE:
            return self.text()
        if byte == _MINUS or 0x30 <= byte <= 0x39:
            return self.number()
        for name, value in ((b"true", True), (b"false", False), (b"null", None)):
            if self.data[self.at : self.at + len(name)] == name:
                self.at += len(name)
                return value
        raise Unreadable("no value")

    def peek(self) -> int:
        """The byte here; -1 at the end."""
        return self.data[self.at] if self.at < len(self.data) else -1

    def take(self, byte: int) -> bool:
        """Whether ``byte`` stands here; if so, the place is behind it."""
        if self.peek() != byte:
            return False
        self.at += 1
        return True

    def need(self, byte: int) -> None:
        if not self.take(byte):
            raise Unreadable("another byte was due")

    def members(self, depth: int) -> dict[str, object]:
        self.need(0x7B)
        found: dict[str, object] = {}
        if self.take(0x7D):
            return found
        while True:
            key = self.text()
            if key in found:
                raise Unreadable("a key twice")
            self.need(0x3A)
            found[key] = self.value(depth + 1)
            if self.take(0x7D):
                return found
            self.need(0x2C)

    def items(self, depth: int) -> list[object]:
        self.need(0x5B)
        found: list[object] = []
        if self.take(0x5D):
            return found
        while True:
            found.append(self.value(depth + 1))
            if self.take(0x5D):
                return found
            self.need(0x2C)

    def text(self) -> str:
        self.need(_QUOTE)
        pieces: list[str] = []
        while True:
            quote = self.data.find(b'"', self.at)
            if quote < 0:
                raise Unreadable("a text without an end")
            backslash = self.data.find(b"\\", self.at, quote)
            if backslash < 0:
                pieces.append(self.data[self.at : quote].decode())
                self.at = quote + 1
                return "".join(pieces)
            pieces.append(self.data[self.at : backslash].decode())
            self.at = backslash + 1
            pieces.append(self.escaped())

    def escaped(self) -> str:
        byte = self.peek()
        self.at += 1
        if byte in _ESCAPES:
            return _ESCAPES[byte]
        if byte != 0x75:
            raise Unreadable("no such escape")
        unit = self.hexadecimal()
        if 0xD800 <= unit <= 0xDBFF and self.take(_BACKSLASH):
            self.need(0x75)
            low = self.hexadecimal()
            if not 0xDC00 <= low <= 0xDFFF:
                raise Unreadable("half a character")
            unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)
        if 0xD800 <= unit <= 0xDFFF:
            raise Unreadable("half a character")
        return chr(unit)

    def hexadecimal(self) -> int:
        """Four hex digits."""
        value = 0
        for _ in range(4):
            byte = self.peek()
            digit = _HEX.find(bytes([byte])) if byte >= 0 else -1
            if digit < 0:
                raise Unreadable("no such escape")
            digit -= 6 if digit > 15 else 0
            value = value * 16 + digit
            self.at += 1
        return value

    def digits(self) -> int:
        """How many digits were here."""
        begin = self.at
        while 0x30 <= self.peek() <= 0x39:
            self.at += 1
        if self.at == begin:
            raise Unreadable("a digit was due")
        return self.at - begin

    def number(self) -> int | None:
        begin = self.at
        self.take(_MINUS)
        zero = self.peek() == _ZERO
        count = self.digits()
        if zero and count > 1:
            raise Unreadable("a number that begins with zero")
        whole = True
        if self.take(_DOT):
            whole = False
            self.digits()
        if self.peek() | 0x20 == 0x65:
            whole = False
            self.at += 1
            if not self.take(0x2B):
                self.take(_MINUS)
            self.digits()
        return int(self.data[begin : self.at]) if whole and count <= DIGITS_MAX else None
