"""Patterns of paths in rules (``Read(./.env)``), as in ``.gitignore``; pure (docs/policy.md)."""

from __future__ import annotations

import re
import string
from typing import Final, Literal, NamedTuple

from pmagent.contracts.guest_calls import LOOKED_FOR

YES: Final = 2
MAYBE: Final = 1
NO: Final = 0
"""Whether a rule holds."""
FOLD: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class BadRule(ValueError):
    """A rule that is not understood. ``hint`` says what may stand there."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Path(NamedTuple):
    """A pattern of paths. ``anchor``: the workspace ("root"), the file system ("/"), or "": it holds at any depth, a
    rule that forbids even outside of the workspace. ``head``: the folders before the first wildcard. ``looked_for``:
    whether a folder that is taken whole was searched for it ("itself"), or for the folder in which it lies."""

    anchor: Literal["root", "/", ""]
    exact: re.Pattern[str]
    folded: re.Pattern[str]
    head: str
    looked_for: Literal["itself", "folder", ""]


def path_of(spec: str) -> Path:
    """The pattern in parentheses behind Read and Edit. Raises BadRule."""
    text = spec
    if text.startswith("//"):
        anchor: Literal["root", "/", ""] = "/"
        text = text[1:].rstrip("/")
    elif text.startswith("~"):
        raise BadRule(f"{spec[:60]!r}: the home is not known here", "a policy's reader writes it out: //home/me/…")
    elif text.startswith("**/") or "/" not in text.rstrip("/"):
        anchor = ""
        text = text.removeprefix("**/").rstrip("/")
    else:
        anchor = "root"
        text = text.removeprefix(".").strip("/")
    if spec in (".", "./", "/"):
        anchor, text = "root", ""
    segments = text.strip("/").split("/")
    if any(one in ("..", ".") for one in segments):
        raise BadRule(f"{spec[:60]!r} holds . or ..", "write the path without them; // begins at the root of all files")
    exact = ("" if anchor else "(?:.*/)?") + _path_regex(text.strip("/"))
    head = []
    for one in segments:
        if re.search(r"[*?\[]", one):
            break
        head.append(one)
    return Path(
        anchor, re.compile(exact, re.DOTALL), re.compile(exact, re.DOTALL | re.IGNORECASE | re.ASCII),
        "/".join(head), looked_for=_looked_for(spec, segments[0], anchor),
    )  # fmt: skip


def _looked_for(spec: str, first: str, anchor: str) -> Literal["itself", "folder", ""]:
    if anchor:
        return ""
    return "itself" if spec in LOOKED_FOR else "folder" if first in LOOKED_FOR else ""


def _path_regex(text: str) -> str:
    """As a regular expression for what stands behind the anchor; all below a path that fits, fits."""
    text = text.removesuffix("/**")
    if text in ("", "**"):
        return r".*"
    made = []
    for one in re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]/]+\])", text):
        if one == "**/":
            made.append(r"(?:[^/]+/)*")
        elif one == "**":
            made.append(r".*")
        elif one == "*":
            made.append(r"[^/]*")
        elif one == "?":
            made.append(r"[^/]")
        elif one.startswith("[") and one.endswith("]") and len(one) > 2:
            inner = one[1:-1]
            negated = inner[0] in "!^"
            inner = inner[1:] if negated else inner
            made.append(f"[{'^/' if negated else ''}{re.escape(inner).replace(chr(92) + '-', '-')}]")
        else:
            made.append(re.escape(one))
    return "".join(made) + r"(?:/.*)?"


def of_path(path: Path, text: str, root: str, *, strict: bool, whole: bool) -> int:
    """Whether a path fits; ``whole``: with all below it."""
    regex = path.folded if strict else path.exact
    if path.anchor == "/":
        rest: str | None = text.lstrip("/")
    else:
        rest = inside(text, root)
    if path.anchor == "" and rest is None and strict:
        rest = text.lstrip("/")
    if rest is not None and regex.fullmatch(rest):
        return YES
    return _below(path, text, root) if strict and whole else NO


def _below(path: Path, folder: str, root: str) -> int:
    """Whether a path that fits may lie below a folder that is taken whole."""
    if path.anchor == "":
        names = path.head.split("/")
        begun = any(f"{folder}/".endswith(f"/{'/'.join(names[:number])}/") for number in range(1, len(names)))
        return NO if path.looked_for == "itself" or (path.looked_for and not begun) else MAYBE
    head = f"/{path.head}" if path.anchor == "/" else f"{root.rstrip('/')}/{path.head}".rstrip("/")
    head, folder = head.translate(FOLD), folder.rstrip("/").translate(FOLD)
    return MAYBE if head.startswith(f"{folder}/") or f"{folder}/".startswith(f"{head}/") else NO


def inside(path: str, root: str) -> str | None:
    """The path below the workspace; "" for itself, None for one outside."""
    if not root:
        return None
    root = root.rstrip("/")
    if path.rstrip("/") == root:
        return ""
    return path[len(root) + 1 :] if path.startswith(f"{root}/") else None
