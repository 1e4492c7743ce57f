"""Meaning of the arguments of programs: which files are read and written, which hosts reached, which other programs
started (``programs.toml``).

A program that is not known here is held to name paths of which nobody knows whether it reads or writes them, and to
send out what it likes. Programs that run what stands in their arguments are taken apart, or not understood.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from pmagent.guests.gathered import ALL, Filter, Gathered, Word

_DATA: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("programs.toml").read_text("utf-8"))
ANY_TEXT: Final = frozenset(_DATA["any_text"].split())
PLAIN_READERS: Final = frozenset(_DATA["plain_readers"].split())
SHELLS: Final = frozenset(_DATA["shells"].split())
WRAPPERS: Final[dict[str, str]] = _DATA["wrappers"]
GIT: Final[dict[str, str]] = _DATA["git"]
ODD: Final = frozenset(_DATA["odd"].split())
_RUNS: Final[dict[str, list[str]]] = {name: options.split() for name, options in _DATA["runs"].items()}
_RUNNERS: Final = {tuple(name.split()): valued for name, valued in _DATA["runners"].items()}
INTERPRETERS: Final[dict[str, dict[str, str]]] = _DATA["interpreters"]
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*=.*", re.ASCII | re.DOTALL)
_VERSIONED: Final = re.compile(r"(python|pypy|pip|perl|ruby|lua|php|node)[\d.]+", re.ASCII)


class Spec(msgspec.Struct, frozen=True):
    """How a program reads its arguments (``programs.toml``)."""

    names: str
    takes: str
    skip: int = 0
    valued: str = ""
    reads: str = ""
    writes: str = ""
    tree: str = ""
    scripts: str = ""


_WRITTEN: Final = {"uniq": 1, "xxd": 1, "zip": 0}
"""The one of its operands that a program of readers writes."""
SPECS: Final[dict[str, Spec]] = {
    name: spec for spec in msgspec.convert(_DATA["spec"], list[Spec]) for name in spec.names.split()
}


class Asked(msgspec.Struct, kw_only=True):
    """A program that a line would start. ``words_before``: the program before it in a pipe; ``text``: what it reads on
    standard input, if that is known; ``piped``: whether anything stands there; ``nested``: takes a line apart that it
    hands to a shell; ``start``: takes a program apart that it starts."""

    words: list[Word]
    sets: list[str]
    cwd: str | None
    found: Gathered
    words_before: list[Word]
    text: str | None
    piped: bool
    nested: Callable[[str, str | None, list[str]], None]
    start: Callable[[Asked], None]

    @property
    def name(self) -> str:
        """The program's name without its folder and version."""
        name = posixpath.basename(self.words[0].text or "")
        versioned = _VERSIONED.fullmatch(name)
        return versioned[1] if versioned else name

    @property
    def rest(self) -> list[Word]:
        """The arguments."""
        return self.words[1:]

    @property
    def texts(self) -> list[str]:
        """The arguments as texts, "" where one is not known."""
        return [word.shown or "" for word in self.words[1:]]

    def why(self, reason: str) -> None:
        """Note why it is not understood."""
        self.found.why(reason)

    def instead(self, words: Sequence[Word], **changes: Any) -> Asked:
        """The same for other words."""
        return msgspec.structs.replace(self, words=list(words), **changes)


def unknown(asked: Asked) -> None:
    """A program that may do anything, under the rules for its name."""
    asked.found.outward = True
    mentions(asked)
    words_known(asked)
    if asked.name in ("make", "gmake") and any("=" in text for text in asked.texts):
        asked.why(f"{asked.name} is given variables")
    for known, valued in _RUNNERS.items():
        if (asked.name, *asked.texts)[: len(known)] == known:
            start_behind(asked, asked.words[len(known) :], valued)


def start_behind(asked: Asked, words: Sequence[Word], valued: str, skip: int = 0) -> None:
    """The program that another one starts, behind that one's own options."""
    at = 0
    while at < len(words) and re.match(r"-.", words[at].text or ""):
        asked.found.mention((words[at].text or "").rpartition("=")[2], asked.cwd)
        at += 2 if words[at].text in valued.split() else 1
        if words[at - 1].text == "--":
            break
    inner = list(words[at + skip :])
    if asked.name == "time":  # a word of the language: variables may follow
        while inner and _ASSIGNED.fullmatch(inner[0].text or ""):
            asked = asked.instead(asked.words, sets=[*asked.sets, (inner.pop(0).text or "").partition("=")[0]])
    if inner:
        asked.start(asked.instead(inner))


def refuse(asked: Asked, name: str) -> None:
    """Note options that run something."""
    for text in asked.texts:
        if given(text, _RUNS.get(name, ())):
            asked.why(f"{name} {text.split('=')[0][:40]} is not looked into")


def given(text: str, options: Iterable[str]) -> str:
    """The one of the options that a word gives, in a shortened or joined form too; "" for none."""
    name = text.split("=", maxsplit=1)[0]
    for one in options:
        longer = one.startswith("--") and len(name) > 3 and one.startswith(name)
        if name == one or longer or (one == "+" and text[0] == "+"):
            return one
        if len(one) == 2 and re.match(r"-[^-]", text) and one[1] in re.split(r"[=/]", text)[0][1:]:
            return one
    return ""


def words_known(asked: Asked) -> None:
    """A word that is known only when the line runs may be an option; a wildcard may stand for one."""
    texts = [word.text for word in asked.words]
    commits = texts[:1] == ["git"] and texts[1:2] in (["commit"], ["tag"], ["stash"])
    for number, word in enumerate(asked.words):
        if word.text is None:
            message = commits and not word.split and texts[number - 1] in ("-m", "-am", "--message")
            if asked.name not in ANY_TEXT and not message:
                asked.why("a word is known only when the line runs")
        elif word.glob and word.text[0] in "*?[" and asked.name not in PLAIN_READERS | ANY_TEXT:
            asked.why("a wildcard may stand for an option")


def mentions(asked: Asked) -> None:
    """Paths that the arguments name, whatever for; hosts of addresses."""
    for word in asked.rest:
        if word.text is None:
            continue
        if word.glob:
            asked.found.mentions.update(dict.fromkeys(asked.found.expanded(word.text, asked.cwd)))
            continue
        for match in re.finditer(r"(?:[a-z][a-z0-9+.-]*:)?//[^\s'\"]+", word.text, re.IGNORECASE):
            note_address(match[0], asked.found)
        if remote := re.fullmatch(r"(?:[\w.-]+@)?([\w-]+(?:\.[\w-]+)+):(?!//|\d+$).*", word.text, re.ASCII):
            asked.found.hosts[remote[1].lower()] = None
        for one in {word.text, *re.split(r"[=:,@]", word.text), word.text[2:] if word.text[:1] == "-" else ""}:
            asked.found.mention(one, asked.cwd)


def note_address(text: str, found: Gathered) -> None:
    """Note the host of an address, or the file."""
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        found.why("an address that is not understood")
        return
    if parts.scheme == "file":
        found.read(Word(unquote(parts.path)), None)
    elif not re.fullmatch(r"[a-z0-9_.:-]+", host, re.ASCII) or "\\" in text or re.search(r"[\[\]{}]", parts.netloc):
        found.why("an address that is not understood")
    else:
        found.hosts[host] = None


def note_patch(text: str, found: Gathered, cwd: str | None) -> None:
    """Note the files that a patch (``*** Update File: …``) changes."""
    paths = re.findall(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", text, re.MULTILINE)
    for one, other in paths:
        found.write(Word((one or other).strip()), cwd)
    if not paths:
        found.why("a patch that is not understood")


# -- programs by their table -----------------------------------------------------------------------------------------


def by_spec(asked: Asked, spec: Spec) -> None:
    """A program of the table."""
    words_known(asked)
    if spec.takes == "text" and asked.name in ANY_TEXT:
        return
    operands, options = parted(asked, spec)
    if spec.takes == "text":
        return
    name, found, cwd = asked.name, asked.found, asked.cwd
    whole = spec.tree == "*" or any(given(one, spec.tree.split()) for one in options)
    if (whole and spec.takes == "read" and not operands and not asked.piped) or \
            (spec.takes == "list" and not operands):  # fmt: skip
        operands = [Word(".")]
    for number, word in enumerate(operands):
        if word.text == "-":
            continue
        if spec.takes == "list":
            found.names(word, cwd)
        elif spec.takes == "write" or number == _WRITTEN.get(name):
            tree = ALL if whole or name == "chmod" else None
            found.write(word, cwd, tree=tree, link=name in ("rm", "unlink", "mkdir"))
        else:
            found.read(word, cwd, tree=_filter(asked) if whole else None)


def parted(asked: Asked, spec: Spec) -> tuple[list[Word], list[str]]:
    """Operands, without those that are no paths, and options; paths that options name are noted."""
    operands: list[Word] = []
    options: list[str] = []
    found, cwd, words, at, ended = asked.found, asked.cwd, asked.rest, 0, False
    paths = (*spec.reads.split(), *spec.writes.split())
    takes = (*spec.valued.split(), *paths)
    while at < len(words):
        word, text = words[at], words[at].shown or ""
        at += 1
        if ended or not re.match("-.", text):
            operands.append(word)
            continue
        if text == "--":
            ended = True
            continue
        options.append(text)
        if text in takes or (text[1] != "-" and "-" + text[-1] in takes and text[:2] not in takes):
            option, value = text if text in takes else "-" + text[-1], words[at] if at < len(words) else Word("")
            at += 1
        elif "=" in text:
            option, value = given(text, paths) or "=", Word(text.partition("=")[2])
        else:
            option, value = text[:2] if text[:2] in paths else "=", Word(text[2:] if text[1] != "-" else "")
        if option in spec.writes.split():
            found.write(value, cwd)
        elif option in paths:
            found.read(value, cwd)
        elif option == "=" and value.text:
            found.mention(value.text, cwd)
    scripted = any(given(one, spec.scripts.split()) for one in options if spec.scripts)
    return operands if scripted else operands[spec.skip :], options


def _filter(asked: Asked) -> Filter:
    """Which files below a folder a searching program looks into."""
    include: list[str] = []
    exclude: list[str] = []
    texts = asked.texts
    for number, text in enumerate(texts):
        key, _, value = text.partition("=")
        value = value or (texts[number + 1] if number + 1 < len(texts) else "")
        if key == "--include":
            include.append(value)
        elif key in ("--exclude", "--exclude-dir") or (key in ("-g", "--glob") and value.startswith("!")):
            exclude.append(value.lstrip("!").strip("/"))
    if asked.name not in ("rg", "ag"):
        return Filter(tuple(include), tuple(exclude))
    more = sum(text.count("u") for text in texts if re.fullmatch(r"-u+|--unr\w*", text))
    hidden = more > 1 or any(text == "-." or text.startswith("--hid") for text in texts)
    return Filter((), tuple(exclude), hidden, more > 0 or any(text.startswith("--no-ig") for text in texts))


# -- programs that run code ------------------------------------------------------------------------------------------


def shell(asked: Asked) -> None:
    """A shell that runs a line, a file, or what it reads."""
    rest, at = asked.rest, 0
    asked.found.outward = True
    while at < len(rest) and (text := rest[at].text) is not None and re.match(r"[-+].", text):
        if re.fullmatch(r"-[a-z]*c[a-z]*", text):
            code = next((number for number in range(at + 1, len(rest)) if not asked.texts[number].startswith("-")), 0)
            if not code or rest[code].shown is None:
                asked.why(f"{asked.name} -c gets a line that is known only when it runs")
            elif len(rest) > code + 1:
                asked.why(f"{asked.name} -c gets arguments")
            if code and rest[code].shown is not None:
                asked.nested(rest[code].shown or "", asked.cwd, asked.sets)
            return
        if not re.fullmatch(r"-[elxuvn]+|-o|--norc|--noprofile|--posix|--version|--help", text):
            asked.why(f"{asked.name} {text[:20]} is not looked into")
        at += 2 if text == "-o" else 1
    if at < len(rest):
        _script(asked, rest[at])
    elif asked.text is not None:
        asked.nested(asked.text, asked.cwd, asked.sets)
    elif not {"--version", "--help"} & set(asked.texts):
        asked.why(f"{asked.name} runs what it reads")


def _script(asked: Asked, word: Word) -> None:
    """A program's code lies in a file."""
    if re.match(r"/dev/|/proc/|-$", word.text or ""):
        asked.why(f"{asked.name} runs what it reads")
    asked.found.read(word, asked.cwd)
    mentions(asked)


def interpreter(asked: Asked) -> None:
    """A program that runs code."""
    kind = INTERPRETERS[asked.name]
    codes, silent = kind["code"].split(), kind["silent"].split()
    asked.found.outward = True
    words_known(asked)
    mentions(asked)
    for word in asked.rest:
        text = word.shown or ""
        if text in silent or (asked.name in ("python", "pypy") and text.startswith("-m")):
            return
        letters = "".join(one[1] for one in codes if len(one) == 2)
        joined = letters and re.match(rf"-[A-Za-z0-9]*[{letters}]", text) is not None
        if joined or text in codes or (text.startswith("--") and given(text, codes)):
            asked.why(f"code for {asked.name} stands in the line")
            return
        if re.match("[^-]", text):
            _script(asked, word)
            return
        if text in ("-", ""):
            break
    asked.why(f"{asked.name} runs what it reads")
