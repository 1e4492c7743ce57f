"""Words of a command line, and what is known of them before it runs (``pmagent.guests.shell``)."""

from __future__ import annotations

import glob
import re
from typing import Final, NamedTuple

from tree_sitter import Node

from pmagent.guests.gathered import Gathered, Word

ROUNDS_MAX: Final = 20
"""So many words of a ``for`` or of braces are looked at one by one."""
UNKNOWN: Final = Word(None)
SPLIT: Final = Word(None, split=True)
LOCAL: Final = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
"""Names that no program looks for in its environment, by custom."""
_CHANGING: Final = re.compile(
    r"_|E?UID|PPID|S?RANDOM|SECONDS|LINENO|(?:OLD)?PWD|REPLY|COLUMNS|LINES|HOSTNAME|GROUPS|IFS|HOME"
    r"|(?:BASH|OPT|DIR|SH|FUNC|PIPE|HIST|EPOCH|COMP|READLINE)\w*", re.ASCII)  # fmt: skip
"""Variables that a shell changes or does not let be changed."""
_MEANING: Final = re.compile(
    r"\w+_proxy|npm_\w+|(?:cd|f|man|mail|module_)?path|argv|status|options|parameters|prompt|[gs]?aliases|functions"
    r"|commands|builtins|nameddirs|dis_\w+|zsh_\w+|\w+_functions", re.ASCII)  # fmt: skip
"""Variables in small letters that mean something to programs or to zsh."""
_PIPE: Final = "/dev/fd/63"
"""The name of what a process substitution gives."""
_PLAIN: Final = re.compile(r"[\w./:@%+=,-]+", re.ASCII)
_WILD: Final = re.compile(r"[*?\[\]]")


class Source(NamedTuple):
    """A program's standard input: from a program before it in a pipe, or a text."""

    words: tuple[Word, ...] = ()
    text: str | None = None
    piped: bool = False


class Flow:
    """Knowledge at a point of the line: the folder (None: not known), variables, and those that change programs."""

    def __init__(self, cwd: str | None) -> None:
        self.cwd = cwd
        self.variables: dict[str, Word] = {}
        self.sets: dict[str, None] = {}
        self.source = Source()

    def assign(self, name: str, word: Word) -> None:
        """Note what a variable is set to. Some are not what was put into them, and some change what programs do."""
        self.variables[name] = SPLIT if _CHANGING.fullmatch(name) else word
        if not LOCAL.fullmatch(name) or _MEANING.fullmatch(name):
            self.sets[name] = None

    def copy(self, source: Source | None = None) -> Flow:
        """The same, for a part that changes nothing outside of itself; it may read from another ``source``."""
        made = Flow(self.cwd)
        made.source = self.source if source is None else source
        made.variables, made.sets = dict(self.variables), dict(self.sets)
        return made

    def blur(self, before: Flow) -> bool:
        """Forget what has changed since: it may have run or not. Whether anything has."""
        changed = [name for name, word in self.variables.items() if before.variables.get(name) != word]
        moved = self.cwd != before.cwd
        self.variables.update(dict.fromkeys(changed, SPLIT))
        self.cwd = None if moved else self.cwd
        return moved or bool(changed)


class Words:
    """The words of a line. ``found``: what is gathered; ``raw``: the line; ``moved``: whether ``~`` may mean another
    folder than this user's."""

    found: Gathered
    raw: bytes
    moved: bool

    def substitution(self, node: Node, flow: Flow) -> None:
        """Walk the commands of a substitution."""
        raise NotImplementedError

    def arithmetic(self, node: Node, flow: Flow) -> None:
        """Note arithmetic that may run something, or of which the numbers are not known."""
        text = text_of(node)
        names = set(re.findall(r"[A-Za-z_]\w*", text))
        known = all(name in flow.variables and re.fullmatch(r"\d+", flow.variables[name].text or "") for name in names)
        if re.search(r"[`\[]|\$[({]", text[3:]) or not (known or not names):
            self.found.why("arithmetic that is computed")
        for name in names:
            flow.variables[name] = UNKNOWN

    def inner(self, node: Node, flow: Flow) -> None:
        """Walk the commands that stand within something that is no statement."""
        for child in node.children:
            if child.type in ("command_substitution", "process_substitution"):
                self.substitution(child, flow)
            elif child.type in ("arithmetic_expansion", "ansi_c_string", "expansion", "string", "array"):
                self.words(child, flow)
            else:
                self.inner(child, flow)

    def words(self, node: Node, flow: Flow) -> list[Word]:
        """The words that a node stands for: one, but for braces that list several."""
        kind = node.type
        if kind in ("command_name", "translated_string") and len(node.named_children) == 1:
            return self.words(node.named_children[0], flow)
        raw = text_of(node)
        if kind in ("word", "concatenation", "number") and re.search(r"\{[^'\"\\$`\s]*(?:,|\.\.)", raw):
            listed = _braces(raw) if _PLAIN.fullmatch(re.sub(r"[{}~]", "", raw)) else []
            if not listed:
                self.found.why("braces that are not understood")
                self.inner(node, flow)
                return [SPLIT]
            return [Word(None if one[:1] == "~" and self.moved else self.found.at_home(one)) for one in listed]
        return [self._word(node, flow)]

    def _word(self, node: Node, flow: Flow) -> Word:
        kind, raw = node.type, text_of(node)
        if kind in ("word", "number", "extglob_pattern", "variable_name", "test_operator", "regex"):
            return self._plain(node, raw)
        if kind == "raw_string":
            return Word(raw[1:-1])
        if kind == "string":
            return self._quoted(node, flow)
        if kind == "simple_expansion":
            if not re.fullmatch(r"\$(?:\w+|[@*#?$!-])", raw, re.ASCII):
                self.found.why("an expansion that is not understood")
            return self._variable(raw[1:], flow)
        if kind == "expansion":
            return self._expansion(node, raw, flow)
        if kind == "command_substitution":
            return self._computed(node, flow)
        if kind == "process_substitution":
            self.substitution(node, flow)
            return Word(_PIPE)
        if kind == "arithmetic_expansion":
            self.arithmetic(node, flow)
            self.inner(node, flow)
            return Word(None)
        if kind == "concatenation":
            return self._joined(node, flow)
        if kind not in ("ansi_c_string", "brace_expression"):
            self.found.why(f"{kind} is not understood")
        self.inner(node, flow)
        return SPLIT

    def _expansion(self, node: Node, raw: str, flow: Flow) -> Word:
        if match := re.fullmatch(r"\$\{(\w+)\}", raw, re.ASCII):
            return self._variable(match[1], flow)
        if not re.fullmatch(r"\$\{#?\w+(?:\[[\w@*]+\])?(?::?[-+=?][\w./-]*)?\}", raw, re.ASCII):
            self.found.why("an expansion that is not understood")
        if "=" in raw:
            flow.sets[re.sub(r"\W", "", raw.split("=", maxsplit=1)[0])] = None
        self.inner(node, flow)
        return SPLIT

    def _plain(self, node: Node, raw: str) -> Word:
        parent = node.parent
        quoted = re.sub(r"\\(.)", r"\1", raw, flags=re.DOTALL)
        if parent is not None and parent.type != "concatenation":
            quoted = self.found.at_home(quoted) if raw[:1] == "~" and not self.moved else quoted
            if quoted.startswith("~"):
                return UNKNOWN
        if not _WILD.search(re.sub(r"\\.", "", raw)) or raw in ("[", "]"):
            return Word(quoted)
        pattern = re.sub(r"\\(.)", lambda match: glob.escape(match[1]), raw, flags=re.DOTALL)
        return Word(self.found.at_home(pattern), glob=True)

    def _quoted(self, node: Node, flow: Flow) -> Word:
        made: list[str] | None = []
        at = node.start_byte + (2 if text_of(node).startswith("$") else 1)
        for child in node.children:
            if child.type == '"' or child.type == '$"':
                continue
            between = _unescaped(self.raw[at : child.start_byte].decode("utf-8", "replace"))
            at = child.end_byte
            if child.type == "string_content" or not child.is_named:
                text: str | None = _unescaped(text_of(child))
            elif name := re.fullmatch(r"\$(?:(\w+)|\{(\w+)\})", text_of(child), re.ASCII):
                text = self._variable(name[1] or name[2], flow, quoted=True).shown
            else:
                text = self._word(child, flow).shown
            made = None if made is None or text is None else [*made, between, text]
        if made is not None:
            made.append(_unescaped(self.raw[at : node.end_byte - 1].decode("utf-8", "replace")))
        inner = [child for child in node.named_children if child.type != "string_content"]
        if match := re.fullmatch(r"\"\$(?:(\w+)|\{(\w+)\})\"", text_of(node), re.ASCII):
            known = flow.variables.get(match[1] or match[2])
            if known is not None and known.glob:
                return known
        if any(re.fullmatch(r"\$\{?[@*].*|.*\[[@*]\].*", text_of(child), re.DOTALL) for child in inner):
            return SPLIT
        return Word(None if made is None else "".join(made))

    def _variable(self, name: str, flow: Flow, *, quoted: bool = False) -> Word:
        known = flow.variables.get(name)
        if known is None and name == "HOME" and "HOME" not in flow.sets:
            known = Word(self.found.home) if self.found.home else None
        if known is None and name == "PWD" and flow.cwd is not None and "PWD" not in flow.sets:
            known = Word(flow.cwd)
        if known is None or known.text is None:
            return SPLIT
        return known if quoted or known.glob or _PLAIN.fullmatch(known.text) else SPLIT

    def _computed(self, node: Node, flow: Flow) -> Word:
        text = text_of(node)
        self.substitution(node, flow)
        if text in ("$(pwd)", "`pwd`") and flow.cwd is not None:
            return Word(flow.cwd)
        match = re.fullmatch(r"\$\(\s*cat\s+<<-?\s*(['\"]?)(\w+)\1\n(.*?)\n?[ \t]*\2\s*\)", text, re.DOTALL)
        if (
            match
            and (match[1] or not re.search(r"[`\\$]", match[3]))
            and not re.search(rf"^\s*{match[2]}$", match[3], re.MULTILINE)
        ):
            return Word(match[3])
        return SPLIT

    def _joined(self, node: Node, flow: Flow) -> Word:
        made, wild, split = [], False, False
        for number, child in enumerate(node.children):
            word = self._word(child, flow)
            if number == 0 and child.type == "word" and word.text is not None and word.text.startswith("~"):
                rest = text_of(node)[1:]
                if rest[:1] not in ("/", "") or not self.found.home or self.moved:
                    word = UNKNOWN
                else:
                    word = Word(self.found.at_home(word.text or ""), word.glob)
            split = split or word.split or word.text is None
            quoted = child.type in ("raw_string", "string")
            wild = wild or (word.glob and not quoted)
            made.append((word.text or "", word.glob))
        if split:
            return SPLIT
        raw = "".join(text_of(child) for child in node.children if child.type == "word")
        wild = wild or bool(re.search(r"[*?]|\[.*\]", re.sub(r"\\.", "", raw)))
        if not wild:
            return Word("".join(text for text, _ in made))
        pairs = zip(made, node.children, strict=True)
        return Word("".join(text if is_glob or child.type == "word" else glob.escape(text)
                            for (text, is_glob), child in pairs), glob=True)  # fmt: skip


def _unescaped(text: str) -> str:
    """A text between double quotes as the program gets it."""
    return re.sub(r"\\([\"\\$`])|\\\n", r"\1", text)


def _braces(text: str) -> list[str]:
    """The words that braces list, as bash does; none where that is not simple."""
    match = re.search(r"\{([^{}]*)\}", text)
    if match is None:
        return [text] if "{" not in text and "}" not in text else []
    steps = re.fullmatch(r"(\d{1,4})\.\.(\d{1,4})", match[1])
    if steps is not None:
        first, last = int(steps[1]), int(steps[2])
        if abs(first - last) > ROUNDS_MAX or steps[1][0] == "0" != steps[1]:
            return []
        inner = [str(one) for one in range(first, last + 1)] or [str(one) for one in range(first, last - 1, -1)]
    elif "," in match[1]:
        inner = match[1].split(",")
    else:
        return []
    made = [_braces(text[: match.start()] + one + text[match.end() :]) for one in inner]
    return [word for words in made for word in words] if all(made) and len(made) <= ROUNDS_MAX else []


def text_of(node: Node | None) -> str:
    """The node's piece of the line."""
    return node.text.decode("utf-8", "surrogatepass") if node is not None and node.text is not None else ""


def depth_of(node: Node) -> int:
    """How deep a tree is."""
    deepest, left = 0, [(node, 1)]
    while left:
        one, depth = left.pop()
        deepest = max(deepest, depth)
        left += ((child, depth + 1) for child in one.children)
    return deepest


def leaves_of(node: Node | None) -> list[Node]:
    """The leaves of the tree; texts whose inner white space is theirs count as one."""
    found: list[Node] = []
    left = [node] if node is not None else []
    while left:
        one = left.pop()
        if one.child_count == 0 or one.type in (
            "string",
            "heredoc_body",
            "expansion",
            "raw_string",
            "arithmetic_expansion",
        ):
            if one.start_byte != one.end_byte or one.is_missing:
                found.append(one)
        else:
            left += reversed(one.children)
    return found
