"""Refusals, and the shapes of fields."""

WORD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
HEX = "0123456789abcdef"


class Refused(Exception):
    """The request is refused. ``code``: a word of docs/hid-protocol.md; ``text`` repeats nothing of the content."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def text_of(where: dict[str, object], name: str, code: str = "PARSE") -> str:
    """The text ``name`` of an object. Raises Refused with ``code`` when there is none."""
    value = where.get(name)
    if not isinstance(value, str):
        raise Refused(code, f"{name} is no text")
    return value


def integer_of(where: dict[str, object], name: str, code: str = "PARSE") -> int:
    """The integer ``name`` of an object. Raises Refused with ``code`` when there is none."""
    value = where.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Refused(code, f"{name} is no integer")
    return value


def object_of(where: dict[str, object], name: str, code: str) -> dict[str, object]:
    """The object ``name`` of an object. Raises Refused with ``code`` when there is none."""
    value = where.get(name)
    if not isinstance(value, dict):
        raise Refused(code, f"{name} is no object")
    return value


def closed(where: dict[str, object], required: tuple[str, ...], optional: tuple[str, ...], code: str) -> None:
    """Raise Refused with ``code`` unless an object has all fields of ``required`` and no other than ``optional``."""
    for name in required:
        if name not in where:
            raise Refused(code, f"{name} is missing")
    for name in where:
        if name not in required and name not in optional:
            raise Refused(code, "there is a field that the contract does not have")


def made_of(text: str, alphabet: str, low: int, high: int) -> bool:
    """Whether ``text`` is ``low`` to ``high`` characters of ``alphabet``."""
    return low <= len(text) <= high and all(character in alphabet for character in text)


def is_id(text: str) -> bool:
    """Whether ``text`` is an id of the contracts."""
    return made_of(text, WORD, 8, 64)


def is_digest(text: str) -> bool:
    """Whether ``text`` is a SHA-256 in hex."""
    return made_of(text, HEX, 64, 64)
