"""The syntax of rules (``Bash(git push *)``), and whether a rule holds for a part of a call; pure (docs/policy.md).

The answer has three values. A rule that forbids must hold also where it is not known: of a word that is known only when
the line runs, of a folder that is taken whole. A rule that allows needs certainty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from pmagent.actors.guests.paths import FOLD, MAYBE, NO, YES, BadRule, Path, inside, of_path, path_of
from pmagent.contracts.guest_calls import Call

PartKind = Literal["command", "read", "write", "mention", "host", "tool", "agent"]

MATCH_CHARS_MAX: Final = 1000
_FORM: Final = re.compile(r"([A-Za-z*][\w.*-]{0,127})(?:\((.*)\))?", re.DOTALL | re.ASCII)
_READING: Final = ("Read",)
_WRITING: Final = ("Edit", "Write", "MultiEdit", "NotebookEdit")
_STARTING: Final = ("Agent", "Task")
_SYSTEM: Final = re.compile(r"(?:/usr/local|/usr)?/s?bin/([^/]+)")
_VERSIONED: Final = re.compile(r"(python|pip)[23](?:\.\d{1,2})?", re.ASCII)
_SETTING: Final = re.compile(r"([A-Za-z_]\w*)=.*", re.ASCII | re.DOTALL)


class Part(NamedTuple):
    """One thing that a call does: it is allowed if each of its parts is. ``text``: a path, host or name; ``words`` and
    ``sets`` are a command's; ``whole``: the path with all below it."""

    kind: PartKind
    text: str = ""
    words: tuple[str | None, ...] = ()
    sets: tuple[str, ...] = ()
    whole: bool = False


class Pattern(NamedTuple):
    """A rule's ``match``, understood. ``parts``: of which parts it speaks (none: it names a tool of the harness, and
    speaks of all parts of its calls). ``words``, ``sets``: a command's, ``wide``: the words as
    a rule that forbids also takes them; ``path``: a path's; ``name``: that of a tool,
    host or kind of agent."""

    parts: tuple[PartKind, ...]
    words: tuple[str, ...] = ()
    wide: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    path: Path | None = None
    name: str = ""
    any: bool = False


@lru_cache(maxsize=4096)
def pattern(match: str) -> Pattern:
    """A rule's ``match``, understood. Raises BadRule."""
    form = _FORM.fullmatch(match.strip())
    if form is None or len(match) > MATCH_CHARS_MAX:
        raise BadRule(f"{match[:60]!r} is no rule", "write Tool or Tool(what), as Bash(git push *) or Read(./.env)")
    tool, spec = form[1], form[2]
    if spec is not None and not spec.strip():
        raise BadRule(f"{tool}() says nothing", f"write {tool} alone for every call of it")
    if spec is not None and spec.strip() in ("*", "**"):
        spec = None
    if tool == "Bash":
        return Pattern(("command",), any=True) if spec is None else _command(spec)
    if tool in (*_READING, *_WRITING):
        parts: tuple[PartKind, ...] = ("read",) if tool in _READING else ("write",)
        return Pattern(parts, any=True) if spec is None else Pattern(parts, path=path_of(spec.strip()))
    if tool == "WebFetch":
        return Pattern(("host",), any=True) if spec is None else Pattern(("host",), name=_host(spec.strip()))
    if tool in _STARTING:
        return Pattern(("agent",), any=spec is None, name=spec or "")
    if spec is not None:
        raise BadRule(
            f"{tool}(…) is not understood",
            "what stands in parentheses is understood of Bash, Read, Edit, Write, WebFetch(domain:…) and Agent; a tool"
            " of an MCP server is named whole, as mcp__server__tool",
        )
    if tool.startswith("mcp__") and tool.count("__") == 1 and not tool.endswith("*"):
        tool += "__*"
    return Pattern((), name=tool, any=tool == "*")


def holds(rule: Pattern, part: Part, root: str, *, strict: bool) -> int:
    """Whether the rule, which names no tool, holds for a part of a call in the workspace ``root``: YES, MAYBE or NO.
    ``strict``: as of a rule that forbids or asks: names are compared without case, programs without their folder,
    hosts with all below them."""
    if part.kind not in rule.parts:
        if not strict or part.kind != "mention" or rule.parts[0] not in ("read", "write"):
            return NO
        fits = rule.path is None or of_path(rule.path, part.text, root, strict=True, whole=part.whole)
        return MAYBE if fits else NO
    if part.kind == "command":
        return _of_command(rule, part, strict=strict)
    if rule.any:
        return YES
    if rule.path is not None:
        return of_path(rule.path, part.text, root, strict=strict, whole=part.whole)
    if part.kind == "host":
        return YES if _of_host(rule.name, part.text, strict=strict) else NO
    return YES if glob(rule.name).fullmatch(part.text) else NO


def names_tool(rule: Pattern, call: Call) -> bool:
    """Whether the rule names the tool of the call, and so speaks of all its parts."""
    return not rule.parts and (rule.any or _tool(rule.name, call))


def begins(rule: Pattern) -> str:
    """The word with which each command begins of which the rule speaks, or the folder or file at the top of the
    workspace with which each path does; "": there is no such one."""
    if rule.words:
        return "" if "*" in rule.words[0] else rule.words[0]
    if rule.path is None or rule.path.anchor != "root":
        return ""
    return rule.path.head.partition("/")[0].translate(FOLD)


def beginnings(part: Part, root: str) -> list[str] | None:
    """The beginnings of rules that speak of the part, besides none; None: any."""
    if part.kind == "command":
        names = [form[0] for form in _forms(part.words, strict=True)] if part.words else [None]
        return None if None in names else [name for name in names if name is not None]
    if part.kind not in ("read", "write", "mention"):
        return []
    first = (inside(part.text, root) or "").partition("/")[0]
    return None if part.whole else [first.translate(FOLD)] if first else []


def parts_of(call: Call) -> Iterator[Part]:
    """The parts of the call; there is at least one."""
    trees = frozenset(call.trees)
    for command in call.commands:
        yield Part("command", words=tuple(command.words), sets=tuple(command.sets))
    for path in call.reads:
        yield Part("read", path, whole=path in trees)
    for path in call.writes:
        yield Part("write", path, whole=path in trees)
    for host in call.hosts:
        yield Part("host", host)
    if call.kind == "agent":
        yield Part("agent", call.starts)
    elif not (call.commands or call.reads or call.writes or call.hosts):
        yield Part(_KIND_PARTS.get(call.kind, "tool"), call.tool)


_KIND_PARTS: Final[dict[str, PartKind]] = {
    "shell": "command", "read": "read", "write": "write", "edit": "write", "fetch": "host",
}  # fmt: skip


def hints_of(call: Call) -> Iterator[Part]:
    """Parts that only rules that forbid or ask are held against: paths that the call names, or names otherwise."""
    for path in call.mentions:
        yield Part("mention", path, whole=path in call.trees)
    for path in call.spelled:
        yield Part("mention", path)
        if call.reads:
            yield Part("read", path)
        if call.writes:
            yield Part("write", path)


def narrow(part: Part, call: Call) -> str:
    """A rule that speaks of this part and of little else; "" where none can be written."""
    if part.kind == "command":
        words = part.words[:2] if len(part.words) > 1 and (part.words[1] or "-")[0] not in "-./" else part.words[:1]
        known = [word for word in words if word is not None and re.fullmatch(r"[\w./:@+-]+", word)]
        return f"Bash({' '.join(known)} *)" if known and len(known) == len(words) else ""
    if part.kind in ("read", "write"):
        tool, path = ("Read" if part.kind == "read" else "Edit"), part.text
        if not path.startswith("/") or re.search(r"[*?\[\]()]", path):
            return ""
        below = inside(path, call.root)
        shown = f"./{below}".rstrip("/") if below is not None else f"/{path}"
        return f"{tool}({shown}{'/**' if part.whole else ''})"
    if part.kind == "host":
        return f"WebFetch(domain:{part.text})" if re.fullmatch(r"[\w.-]+", part.text) else ""
    if part.kind == "agent":
        return f"Agent({part.text})" if part.text else "Agent"
    return part.text if _FORM.fullmatch(part.text) else ""


def exact(call: Call) -> str:
    """The one rule that speaks of exactly this call; "" where it takes several, or none can be written."""
    rules = {_exact(part, call) for part in parts_of(call)}
    return rules.pop() if len(rules) == 1 and not call.unclear else ""


def _exact(part: Part, call: Call) -> str:
    if part.kind != "command":
        return narrow(part, call)
    words = [word for word in part.words if word is not None and re.fullmatch(r"[\w./:@+=,%-]+", word)]
    return f"Bash({' '.join(words)})" if words and len(words) == len(part.words) and not part.sets else ""


# -- commands --------------------------------------------------------------------------------------------------------


def _command(spec: str) -> Pattern:
    text = spec.strip()
    if text.endswith(":*"):
        text = text[:-2] + " *"
    words = text.split()
    sets = []
    while words and (setting := _SETTING.fullmatch(words[0])):
        sets.append(setting[1])
        words.pop(0)
    if not words:
        raise BadRule(f"Bash({spec[:60]}) names no program", "write the program's name after the variables, or *")
    if len(words[-1]) > 1 and words[-1].endswith("*"):
        words.append("*")  # rm* is whatever begins so
    wide = [part for word in words for part in _widened(word)]
    return Pattern(("command",), tuple(words), sets=tuple(sets), wide=tuple(wide) if wide != words else ())


def _widened(word: str) -> list[str]:
    """A word with a ``*`` in it, as the several words for which it may stand: ``git*push`` is ``git* * *push``."""
    first, star, last = word.partition("*")
    return [f"{first}*", "*", f"*{last}"] if star and first and last else [word]


def _of_command(rule: Pattern, part: Part, *, strict: bool) -> int:
    if not strict and any(name not in HARMLESS and name not in rule.sets for name in part.sets):
        return NO
    if rule.any:
        return YES
    if not part.words:
        return NO  # nothing is started, or it is not understood: that is asked anyway
    forms = _forms(part.words, strict=strict)
    if not strict:
        return max(_words(rule.words, form) for form in forms)
    ways = (rule.words, rule.wide) if rule.wide else (rule.words,)
    return max(_strict(words, form) for form in forms for words in ways)


@lru_cache(maxsize=4096)
def _forms(words: tuple[str | None, ...], *, strict: bool) -> Sequence[Sequence[str | None]]:
    """The ways of writing this command that mean the same; to a rule that forbids, also those that mean about that."""
    forms: list[Sequence[str | None]] = [words]
    name = words[0]
    if name is None:
        return forms
    if system := _SYSTEM.fullmatch(name):
        name = system[1]
        forms.append((name, *words[1:]))
    if strict:
        name = name.rsplit("/", 1)[-1].translate(FOLD)
        forms.append((name, *words[1:]))
    if name == "git" and (behind := _behind_options(words, strict=strict)) is not None:
        forms.append((name, *behind))
    if versioned := _VERSIONED.fullmatch(name):
        name = versioned[1]
        forms.append((name, *words[1:]))
    if strict and name == "python" and len(words) > 2 and words[1] == "-m":
        forms.append(words[2:])
    return forms


def _behind_options(words: Sequence[str | None], *, strict: bool) -> Sequence[str | None] | None:
    """The words of git behind its own options, of which a rule that allows overlooks those that only say where and
    how to print; None where there are none."""
    at = 1
    while at < len(words) and (word := words[at]) is not None and word.startswith("-"):
        if word in _GIT_QUIET:
            at += 1
        elif word == "-C" or (strict and word in _GIT_VALUED):
            at += 2
        elif strict:
            at += 1
        else:
            return None
    return words[at:] if at > 1 else None


_GIT_QUIET: Final = ("--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects")
_GIT_VALUED: Final = ("-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix")


def _words(rule: Sequence[str], words: Sequence[str | None], *, loose: bool = False) -> int:
    """Whether words are as the rule says. A ``*`` of its own stands for any words, also none; in a word for any
    characters. A word that is not known may be anything, or nothing, or several. ``loose``: options may stand between
    the words of the rule, and perhaps an option's value."""
    if rule[-1] == "*" and [*words[: len(rule) - 1]] == [*rule[:-1]]:
        return YES  # as it is mostly written
    states = _starred({(0, False): YES}, rule)  # words of the rule that are behind, after an option? -> certainty
    for number, word in enumerate(words):
        after: dict[tuple[int, bool], int] = {}
        for (at, valued), sure in states.items():
            if at < len(rule) and rule[at] == "*":
                _add(after, (at, False), sure)
            elif word is None:
                for further in range(at, len(rule) + 1):
                    _add(after, (further, False), MAYBE)
            else:
                if at < len(rule) and _word(rule[at], word):
                    _add(after, (at + 1, False), sure)
                if loose and number and len(word) > 1 and word[0] in "-+":
                    _add(after, (at, "=" not in word), sure)
                elif valued:
                    _add(after, (at, False), MAYBE)
        states = _starred(after, rule)
        if not states:
            return NO
    return max(states.get((len(rule), False), NO), states.get((len(rule), True), NO))


def _starred(states: dict[tuple[int, bool], int], rule: Sequence[str]) -> dict[tuple[int, bool], int]:
    for at in range(len(rule)):
        if rule[at] == "*":
            for valued in (False, True):
                if (at, valued) in states:
                    _add(states, (at + 1, valued), states[at, valued])
    return states


def _add(states: dict[tuple[int, bool], int], at: tuple[int, bool], sure: int) -> None:
    states[at] = max(states.get(at, NO), sure)


def _strict(rule: Sequence[str], words: Sequence[str | None]) -> int:
    """The same for a rule that forbids: its options may stand anywhere and be written otherwise."""
    options = [one for one in rule[1:] if len(one) > 1 and one[0] == "-" and one != "--"]
    others = [*rule[:1], *(one for one in rule[1:] if one not in options)]
    found = _words(others, words, loose=True)
    for option in options:
        if not found:
            break
        found = min(found, _option(option, words))
    return found


def _option(option: str, words: Sequence[str | None]) -> int:
    """Whether an option is among the words: itself, its letters in any order (``-fr``), or a longer or shorter form
    of it (``--force``, ``--for``, ``-f``), of which nobody knows whether it means the same."""
    if any(word is not None and _word(option, word) for word in words[1:]):
        return YES
    name = option.lstrip("-").split("=")[0].rstrip("*")
    short = not option.startswith("--")
    letters = {char for word in words if word is not None and re.match("-[^-]", word) for char in word[1:]}
    long = [word[2:].split("=")[0] for word in words if word is not None and re.match("--.", word)]
    if short and set(name) <= letters:
        return YES
    if not short and name in long:
        return YES if "=" not in option else MAYBE
    firsts = {char.lower() for char in letters} | {one[0] for one in long}
    similar = {char.lower() for char in name} <= firsts if short else \
        name[:1] in letters or any(name.startswith(one) for one in long)  # fmt: skip
    return MAYBE if similar or None in words else NO


def _word(rule: str, word: str) -> bool:
    return rule == word or ("*" in rule and glob(rule).fullmatch(word) is not None)


HARMLESS: Final = frozenset((
    "LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME", "TZ", "CI", "NO_COLOR",
    "FORCE_COLOR", "CLICOLOR", "COLUMNS", "LINES", "TERM", "DEBUG", "VERBOSE", "NODE_ENV", "RAILS_ENV", "APP_ENV",
    "RUST_LOG", "RUST_BACKTRACE", "CARGO_TERM_COLOR", "CARGO_INCREMENTAL", "PYTHONUNBUFFERED", "PYTHONHASHSEED",
    "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUTF8", "SOURCE_DATE_EPOCH", "LOG_LEVEL",
))  # fmt: skip
"""Variables that change no program's power. One that sets another is allowed only by a rule that names the variable:
``Bash(DATABASE_URL=* pytest *)``."""


# -- hosts and names -------------------------------------------------------------------------------------------------


def _host(spec: str) -> str:
    name = spec.removeprefix("domain:").strip().rstrip(".").translate(FOLD)
    if not spec.startswith("domain:") or not re.fullmatch(r"(?:\*\.)?[a-z0-9_.:\[\]-]+", name):
        raise BadRule(f"WebFetch({spec[:60]}) is not understood", "write WebFetch(domain:example.org)")
    return name


def _of_host(name: str, host: str, *, strict: bool) -> bool:
    host = host.rstrip(".").translate(FOLD)
    if name.startswith("*."):
        return host.endswith(name[1:]) or (strict and host == name[2:])
    return host == name or (strict and host.endswith(f".{name}"))


def _tool(name: str, call: Call) -> bool:
    known = [call.tool]
    if call.server:
        known.append(f"mcp__{call.server}__{call.tool.rsplit('__', 1)[-1]}")
    return any(glob(name).fullmatch(one) for one in known)


@lru_cache(maxsize=4096)
def glob(text: str) -> re.Pattern[str]:
    """Names in which ``*`` stands for any characters."""
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)
