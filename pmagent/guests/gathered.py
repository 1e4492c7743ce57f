"""Files that a call would touch, looked up on this machine once: links, globs, the files below a folder."""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from pmagent.contracts.guest_calls import LOOKED_FOR, Command
from pmagent.guests.files import Files, Moment, NotResolved, any_of

PATHS_MAX: Final = 200
"""So many paths a glob or a folder may bring."""
SHOWN_MAX: Final = 20
"""So many words a wildcard is shown as."""
PATH_BYTES_MAX: Final = os.pathconf("/", "PC_PATH_MAX")
"""A longer text is no path."""

_NOWHERE: Final = frozenset((
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/stdin", "/dev/stdout",
    "/dev/stderr", "/dev/fd/63",
))  # fmt: skip
_PROC: Final = re.compile(r"/proc/(?:self|thread-self|\d+)(?:/task/\d+)?/(\w+)(/.*)?", re.ASCII | re.DOTALL)
_SHARED: Final = ("/node_modules/", "/site-packages/", "/target/", "/.git/", "/.venv/", "/venv/")
"""Package managers and compilers give files below these more than one name."""
_NAMES: Final = tuple(one for one in LOOKED_FOR if "/" not in one)
_KEY: Final = "data/key"


class Word(NamedTuple):
    """A word of a command line. ``text``: None: known only when the line runs; of a glob, its pattern, in which quoted
    wildcards stand in brackets. ``split``: it may become several words, or none."""

    text: str | None
    glob: bool = False
    split: bool = False

    @property
    def shown(self) -> str | None:
        """The word as a rule sees it."""
        return None if self.glob else self.text


class Filter(NamedTuple):
    """Which files a program takes of those below a folder: names it takes (none: all) and leaves out, whether hidden
    ones, and whether those that git ignores."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    hidden: bool = True
    ignored: bool = True


ALL: Final = Filter()


class Gathered:
    """Effects of a call, as they are found; each list in the order of finding, without doubles."""

    def __init__(self, root: str, home: str, moment: Moment | None = None) -> None:
        self.root = root
        self.home = home
        self.files = Files(moment)
        self.commands: list[Command] = []
        self.reads: dict[str, None] = {}
        self.writes: dict[str, None] = {}
        self.trees: dict[str, None] = {}
        self.mentions: dict[str, None] = {}
        self.spelled: dict[str, None] = {}
        self.hosts: dict[str, None] = {}
        self.unclear: dict[str, None] = {}
        self.outward = False

    def why(self, reason: str) -> None:
        """Note why the call is not wholly understood."""
        self.unclear[reason] = None

    def start(self, words: Sequence[Word], sets: Sequence[str], cwd: str | None) -> None:
        """Note a program that would be started."""
        shown = [word for one in words for word in ([one.shown] if not one.glob else self._listed(one.text or "", cwd))]
        command = Command(words=shown, sets=list(dict.fromkeys(sets)))
        if command not in self.commands:
            self.commands.append(command)

    def _listed(self, pattern: str, cwd: str | None) -> list[str | None]:
        """A wildcard as a rule sees it: below a folder that it names, the files that are there; else it may stand for
        any word."""
        if "/" not in re.split(r"[*?\[]", pattern)[0] or (cwd is None and pattern[0] != "/"):
            return [None]
        found, whole = self.files.matches(pattern, cwd, PATHS_MAX)
        return [_encodable(one) for one in found] or [pattern] if whole and len(found) <= SHOWN_MAX else [None]

    def read(self, word: Word, cwd: str | None, *, tree: Filter | None = None) -> None:
        """Note that a file is read, or with ``tree`` what lies below a folder."""
        for path in self._paths(word, cwd):
            self.reads[path] = None
            if tree is not None:
                self._whole(path, self.reads, tree)

    def names(self, word: Word, cwd: str | None) -> None:
        """Note that the names in a folder are read; that of a file tells nothing."""
        known = len(self.unclear)
        paths = [path for path in self._paths(word, cwd) if self.files.is_folder(path)]
        if word.text is not None:
            for reason in [one for one in list(self.unclear)[known:] if one.endswith("(hard links)")]:
                del self.unclear[reason]
        self.reads.update(dict.fromkeys(paths))

    def write(self, word: Word, cwd: str | None, *, tree: Filter | None = None, link: bool = False) -> None:
        """Note that a file is written, removed or made; ``link``: a link of that name itself, not what it leads to."""
        for path in self._paths(word, cwd):
            self.writes[path] = None
            if tree is not None:
                self._whole(path, self.writes, tree)
        if link and word.text is not None and cwd is not None and not word.glob:
            folder, name = posixpath.split(word.text.rstrip("/"))
            if name not in ("", ".", ".."):
                real = self.files.nearest(posixpath.join(cwd, folder))
                self.writes[_encodable(posixpath.join(real, name))] = None

    def mention(self, text: str, cwd: str | None) -> None:
        """Note a path that is named, if the text is one: it looks so, or such a file is there."""
        if not text or "\0" in text or len(text) > PATH_BYTES_MAX:
            return
        looks = "/" in text or text.startswith((".", "~"))
        if "://" in text or (cwd is None and not text.startswith("/")):
            return
        if looks or self.files.is_there(posixpath.join(cwd or "/", text)):
            for path in self._paths(Word(self.at_home(text)), cwd):
                self.mentions[path] = None

    def at_home(self, text: str) -> str:
        """The text with a leading ``~`` as the home."""
        return self.home + text[1:] if self.home and (text == "~" or text.startswith("~/")) else text

    def _paths(self, word: Word, cwd: str | None) -> Iterator[str]:
        if word.text is None:
            self.why("a path is known only when the line runs")
        elif word.glob:
            yield from self.expanded(word.text, cwd)
        elif path := self._resolved(word.text, cwd):
            yield path

    def expanded(self, pattern: str, cwd: str | None) -> Iterator[str]:
        """The paths that a wildcard stands for."""
        if cwd is None and not pattern.startswith("/"):
            self.why("the folder is known only when the line runs")
            return
        if re.search(r"\[[\[^]|\[:", pattern.replace("[[]", "")):
            self.why("a set of characters in a name")
            return
        found, whole = self.files.matches(pattern, cwd, PATHS_MAX)
        if not whole:
            self.why("a wildcard stands for very many files")
        for one in found or [pattern]:
            if path := self._resolved(one, cwd):
                yield path

    def _resolved(self, text: str, cwd: str | None) -> str:
        """The absolute path, links resolved; "" for one of no meaning."""
        if not text or text in _NOWHERE or (text.startswith("/dev/fd/") and text[8:] in ("0", "1", "2")):
            return ""
        if "\0" in text:
            self.why("a path holds a zero byte")
            return ""
        if cwd is None and not text.startswith("/"):
            self.why("the folder is known only when the line runs")
            return ""
        joined = posixpath.join(cwd or "/", text)
        written = posixpath.normpath(joined).replace("//", "/", 1)
        if proc := _PROC.fullmatch(written):
            if proc[1] == "root" or (proc[1] == "cwd" and cwd is not None):
                joined = (("" if proc[1] == "root" else cwd or "") + (proc[2] or "")) or "/"
            else:
                self.why("a path leads through another process")
                return written
        elif written.startswith(("/dev/fd/", "/dev/tcp/", "/dev/udp/")):
            self.why("a path leads through another process")
            return written
        if not written.isascii():
            self._letters(written)
        try:
            real = self._real(joined)
        except NotResolved as error:
            self.why(f"a path cannot be looked up: {error}")
            return _encodable(written)
        if real != written:
            self.spelled[_encodable(written)] = None
        return _encodable(real)

    def _real(self, path: str) -> str:
        """The path with its links resolved. Raises NotResolved."""
        real, links = self.files.real(path)
        if links > 1 and not any(one in real for one in _SHARED):
            self.why(f"{real} has {links} names (hard links)")
        return real

    def _letters(self, path: str) -> None:
        """Note letters that look like others."""
        plain = unicodedata.normalize("NFKC", path)
        if plain != path:
            self.spelled[plain] = None
        if strange(path):
            self.why("a name holds letters that look like others")

    def _whole(self, path: str, into: dict[str, None], of: Filter) -> None:
        self.trees[path] = None
        folders = [path] if self.files.is_folder(path) else []
        self.files.lasting &= not folders  # what lies below one is looked through each time
        ignored = () if of.ignored or not folders else _ignored(self.root)
        for key in (f"{path}/{_KEY}", f"{path}/key"):
            if key.endswith(f".pmagent/{_KEY}") and self.files.is_there(key):
                into[key] = None
        while folders:
            folder = folders.pop()
            try:
                entries = self.files.entries(folder)
            except OSError as error:
                self.why(f"a folder cannot be looked through: {type(error).__name__}")
                continue
            if entries is None or len(into) > PATHS_MAX:
                self.why("a folder holds too much to be looked through")
                return
            for entry in entries:
                if (of.hidden or not entry.name.startswith(".")) and not _any(entry.name, (*of.exclude, *ignored)):
                    self._entry(entry, folders, into, of)

    def _entry(self, entry: os.DirEntry[str], folders: list[str], into: dict[str, None], of: Filter) -> None:
        """Note an entry of a folder, if its name is looked for; a folder is looked through next."""
        name, path = entry.name, _encodable(entry.path)
        if entry.is_dir(follow_symlinks=False):
            if name == ".pmagent" and not of.ignored:
                return  # its own .gitignore leaves all out
            if name == ".pmagent" and os.path.lexists(f"{entry.path}/{_KEY}") and \
                    (not of.include or _any("key", of.include)):  # fmt: skip
                into[f"{path}/{_KEY}"] = None
            if name not in (".git", "node_modules", ".pmagent"):
                folders.append(entry.path)
            if name in _NAMES and (name != ".git" or of.ignored):
                into[path] = self.trees[path] = None
        elif _any(name, _NAMES) and (not of.include or _any(name, of.include)):
            into[path] = None
            if entry.is_symlink():
                into[_encodable(os.path.realpath(entry.path))] = None


def _encodable(path: str) -> str:
    """The path, with bytes that are no UTF-8 written out."""
    return path.encode("utf-8", "backslashreplace").decode()


def strange(text: str) -> bool:
    """Whether a text holds characters that are not seen, or letters of two scripts that look alike in one word."""
    if text.isascii():
        return not text.isprintable()
    if any(unicodedata.category(char)[0] in "CZ" and char != " " for char in text):
        return True
    for word in re.split(r"[\s/._-]+", text):
        scripts = {unicodedata.name(char, "?").split()[0] for char in word if char.isalpha()}
        if len(scripts & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU"}) > 1:
            return True
    return unicodedata.normalize("NFKC", text) != unicodedata.normalize("NFC", text)


def _any(name: str, globs: tuple[str, ...]) -> bool:
    return bool(any_of(globs)(name))


def _ignored(root: str) -> tuple[str, ...]:
    """Names that git ignores at any depth, as the workspace's ``.gitignore`` says; none where that is not simple."""
    try:
        with open(f"{root}/.gitignore", encoding="utf-8") as file:
            lines = [line.strip() for line in islice(file, 2000)]
    except (OSError, UnicodeError):
        return ()
    if any(line.startswith("!") for line in lines):
        return ()
    return tuple(line.strip("/") for line in lines if line and line[0] != "#" and "/" not in line.strip("/"))
