"""A command line, taken apart: the programs that it would start, and the files and hosts that it would touch.

It is parsed with tree-sitter-bash. Every part of the tree must be known here; anything else makes the line not
understood, and so does a place where bash and the parser may differ. Programs' arguments are read by
``pmagent.guests.programs``.
"""

from __future__ import annotations

import glob
import os
import posixpath
import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Final, NamedTuple

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from pmagent.guests.gathered import Gathered, Word, strange
from pmagent.guests.programs import Asked, understand

LINE_BYTES_MAX: Final = 64 * 1024
DEPTH_MAX: Final = 60
"""Deepest nesting that is looked into."""
ROUNDS_MAX: Final = 20
"""So many words of a ``for`` are looked at one by one."""

_UNKNOWN: Final = Word(None)
_SPLIT: Final = Word(None, split=True)
_PIPE: Final = "/dev/fd/63"
"""The name of what a process substitution gives."""
_PLAIN: Final = re.compile(r"[\w./:@%+=,-]+", re.ASCII)
_WILD: Final = re.compile(r"[*?\[\]]")
_STATEMENTS: Final = frozenset((
    "program", "subshell", "compound_statement", "do_group", "else_clause", "elif_clause", "if_statement",
    "case_item", "negated_command",
))  # fmt: skip
_BRANCHES: Final = ("if_statement", "else_clause", "elif_clause", "case_item")
_LOCAL: Final = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
_ENDS: Final = re.compile(r"(?:exit|return)\b")


class Source(NamedTuple):
    """What a program gets to read on its standard input: from a program before it in a pipe, or a text."""

    words: tuple[Word, ...] = ()
    text: str | None = None
    piped: bool = False


class Flow:
    """What is known at a point of the line: the folder (None: not known), variables, and those that change programs."""

    def __init__(self, cwd: str | None) -> None:
        self.cwd = cwd
        self.variables: dict[str, Word] = {}
        self.sets: dict[str, None] = {}
        self.source = Source()

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
        self.variables.update(dict.fromkeys(changed, _SPLIT))
        self.cwd = None if moved else self.cwd
        return moved or bool(changed)


@cache
def parser_name() -> str:
    """The parser and its version, as it stands with what it understood."""
    return f"tree-sitter-bash {version('tree-sitter-bash')}, tree-sitter {version('tree-sitter')}"


def read_line(line: str, gathered: Gathered, cwd: str | None) -> None:
    """Take a command line apart, into ``gathered``."""
    _Line(line, gathered, 0).statements(Flow(cwd))


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


class _Line:
    def __init__(self, line: str, gathered: Gathered, depth: int) -> None:
        self.found = gathered
        self.depth = depth
        self.raw = line.encode("utf-8", "surrogatepass")
        self.root: Node | None = None
        self.last: list[Word] = []
        """The words of the simple command that was walked last."""
        self.moved = "HOME" in line and re.search(r"HOME\W*=|HOME\b.*\bin\b|read\b.*HOME", line) is not None
        """Whether ``~`` may mean another folder than this user's."""
        if len(self.raw) > LINE_BYTES_MAX:
            gathered.why("the line is very long")
        elif re.search(r"[\x00-\x08\x0b-\x1f\x7f]", line):
            gathered.why("the line holds control characters")
        elif depth > 4:
            gathered.why("lines within lines, too deep")
        else:
            self.root = _parser().parse(self.raw).root_node
            if _depth(self.root) > DEPTH_MAX:
                gathered.why("the line is nested very deep")
                self.root = None
                return
            if self.root.has_error:
                gathered.why("the line cannot be parsed")
            if strange(line.replace("\n", " ").replace("\t", " ")):
                gathered.why("the line holds letters that look like others, or are not seen")
            self._gaps()

    def statements(self, flow: Flow) -> None:
        """Walk the whole line."""
        if self.root is not None:
            self._statement(self.root, flow)

    def _gaps(self) -> None:
        """Between the leaves of the tree stands white space and nothing else: the parser has overlooked nothing."""
        at, last = 0, None
        for leaf in _leaves(self.root):
            gap = self.raw[at : leaf.start_byte]
            if gap.strip(b" \t\n\\") or b"\\" in gap.replace(b"\\\n", b""):
                self.found.why("the line holds characters that the parser passes over")
            if b"\\\n" in gap and b"\n" in gap.replace(b"\\\n", b""):
                self.found.why("a line goes on over an empty one")
            if gap.startswith(b"\\\n") and last is not None and (last.is_named or last.type in "'\"`)}]"):
                self.found.why("a line goes on within a word")
            if leaf.type == "comment":
                if at and not re.search(rb"[\s;&|()]$", self.raw[: leaf.start_byte]):
                    self.found.why("a # within a word")
                if b"\\\n" in (leaf.text or b""):
                    self.found.why("a comment that goes on")
            elif leaf.type == "word" and re.search(rb"[`\n]", leaf.text or b""):
                self.found.why("a backquote or a new line within a word")
            at, last = max(at, leaf.end_byte), leaf
        if self.raw[at:].strip(b" \t\n") or (last is not None and last.is_missing):
            self.found.why("the line holds characters that the parser passes over")

    # -- statements --------------------------------------------------------------------------------------------------

    def _statement(self, node: Node, flow: Flow) -> None:
        kind = node.type
        handler = getattr(self, f"_{kind}", None)
        if kind in _STATEMENTS:
            self._block(node, flow)
        elif handler is not None:
            handler(node, flow)
        elif node.is_named and kind not in ("comment", "file_descriptor"):
            self.found.why(f"{kind} is not understood" if not node.is_error else "the line cannot be parsed")
            self._inner(node, flow)

    def _block(self, node: Node, flow: Flow) -> None:
        kind = node.type
        inner = flow.copy() if kind == "subshell" else flow
        before = flow.copy()
        for name, child in _fields(node):
            behind = child.next_sibling
            if kind == "case_item" and name == "value":
                self._inner(child, inner)
            elif child.is_named and behind is not None and behind.type == "&":
                self._statement(child, inner.copy())
            elif child.is_named:
                self._statement(child, inner)
                if kind in _BRANCHES:
                    inner.blur(before)
            elif kind == "compound_statement" and child.type == "((":
                self._arithmetic(node, flow)

    def _while_statement(self, node: Node, flow: Flow) -> None:
        self._rounds(node.named_children, flow)

    def _rounds(self, nodes: Sequence[Node], flow: Flow) -> None:
        """What a loop repeats: the second round may begin otherwise than the first."""
        for _ in range(2):
            before = flow.copy()
            for child in nodes:
                self._statement(child, flow)
            if not flow.blur(before):
                return

    def _list(self, node: Node, flow: Flow, *, inner: bool = False) -> None:
        children = [child for child in node.children if child.is_named and child.type != "comment"]
        both = any(child.type == "&&" for child in node.children)
        before = flow.copy()
        for number, child in enumerate(children):
            if number == 0 and child.type == "list" and both:
                self._list(child, flow, inner=True)
                continue
            if number == 0:
                self._statement(child, flow)
                after = flow.copy()
                continue
            if not both:
                flow.blur(before)
            self._statement(child, flow)
            if not both and _ENDS.match(_text(child)):
                flow.cwd, flow.variables = after.cwd, after.variables
        if not inner and len(children) > 1 and both:
            first = children[0]
            keep = before.copy()
            if first.type != "list" and _is_cd(first):
                keep.cwd = after.cwd if flow.cwd == after.cwd else keep.cwd
            flow.blur(keep)

    def _pipeline(self, node: Node, flow: Flow) -> None:
        given = flow.source
        for child in node.children:
            if child.is_named and child.type != "comment":
                self._statement(child, flow.copy(given))
                simple = child.type in ("command", "redirected_statement")
                given = Source(tuple(self.last) if simple else (), piped=True)

    def _redirected_statement(self, node: Node, flow: Flow) -> None:
        outer, body = flow.source, node.child_by_field_name("body")
        for name, child in _fields(node):
            if name == "redirect":
                flow.source = self._redirect(child, flow)
            elif child.is_named and child != body:
                self._statement(child, flow)
        if body is not None:
            self._statement(body, flow)
        flow.source = outer

    def _redirect(self, node: Node, flow: Flow) -> Source:
        """Note a redirection; what the program then reads on its standard input."""
        if node.type == "heredoc_redirect":
            return self._heredoc(node, flow)
        if node.type == "herestring_redirect":
            words = [word for child in node.named_children for word in self._words(child, flow)]
            return Source(text=words[0].shown if len(words) == 1 else None, piped=True)
        self._statement(node, flow)
        return Source(piped=True) if any(child.type == "<" for child in node.children) else flow.source

    def _heredoc(self, node: Node, flow: Flow) -> Source:
        start = body = None
        if not any(child.type == "heredoc_end" and child.end_byte > child.start_byte for child in node.children):
            self.found.why("a here-document without its end")
        for name, child in _fields(node):
            if child.type == "heredoc_start":
                start = child
            elif child.type == "heredoc_body":
                body = child
            elif name == "redirect":
                self._redirect(child, flow)
            elif name == "argument":
                self.found.why("arguments behind a here-document")
                self._words(child, flow)
            elif child.is_named and child.type not in ("heredoc_end", "file_descriptor"):
                before = flow.copy()
                self._statement(child, flow.copy(Source(piped=True)))
                flow.blur(before)
        text = _text(body)
        if start is not None and re.search(r"['\"\\]", _text(start)):
            return Source(text=text, piped=True)
        if body is not None:
            self._inner(body, flow)
        if "`" in text or (re.search(r"\$[({\[]", text) and body is not None and not body.named_children):
            self.found.why("a here-document that is computed")
        return Source(text=None if re.search(r"[`\\]|\$[({\[\w]", text) else text, piped=True)

    def _file_redirect(self, node: Node, flow: Flow) -> None:
        operator = next((child.type for child in node.children if not child.is_named), "")
        words = [word for name, child in _fields(node) if name == "destination" for word in
                 self._words(child, flow)]  # fmt: skip
        if len(words) != 1 or words[0].split or words[0].text in ("!", ""):
            self.found.why("a redirection that is not understood")
            return
        text = words[0].text
        if operator in (">&", "<&", ">&-", "<&-") and text is not None and re.fullmatch(r"\d+-?|-", text):
            return
        if text is not None and (match := re.match(r"/dev/(?:tcp|udp)/([^/]+)/", text)):
            self.found.hosts[match[1].lower()] = None
            self.found.outward = True
        if operator == "<":
            self.found.read(words[0], flow.cwd)
        else:
            self.found.write(words[0], flow.cwd)

    def _for_statement(self, node: Node, flow: Flow) -> None:
        name = _text(node.child_by_field_name("variable"))
        values = [word for field, child in _fields(node) if field == "value" for word in
                  self._words(child, flow)]  # fmt: skip
        body = node.child_by_field_name("body")
        before = flow.copy()
        known = 0 < len(values) <= ROUNDS_MAX and not any(word.split for word in values)
        for value in values if known else [_UNKNOWN]:
            flow.variables[name] = value
            if not _LOCAL.fullmatch(name):
                flow.sets[name] = None
            if body is not None:
                self._rounds([body], flow)
            flow.blur(before)

    def _c_style_for_statement(self, node: Node, flow: Flow) -> None:
        body = node.child_by_field_name("body")
        text = _text(node)[: (body.start_byte - node.start_byte) if body is not None else None]
        if re.search(r"[$`\[]", text):
            self.found.why("arithmetic that is computed")
        for match in re.finditer(r"[A-Za-z_]\w*", text):
            flow.variables[match[0]] = Word(None)
        if body is not None:
            self._rounds([body], flow)

    def _case_statement(self, node: Node, flow: Flow) -> None:
        for name, child in _fields(node):
            if name == "value":
                self._words(child, flow)
            elif child.is_named:
                self._statement(child, flow)

    def _function_definition(self, node: Node, flow: Flow) -> None:
        self.found.why("it defines a function")
        body = node.child_by_field_name("body")
        if body is not None:
            self._statement(body, flow.copy(Source()))

    def _test_command(self, node: Node, flow: Flow) -> None:
        self.found.start([Word(node.children[0].type)], [*flow.sets], flow.cwd)
        text = _text(node)
        if re.search(r"\s-(?:v|R|eq|ne|lt|gt|le|ge)\s", text) and re.search(r"[$`]|\w\[", text) and \
                not self._numbers(text, flow):  # fmt: skip
            self.found.why("a test that computes")
        self._inner(node, flow)

    def _numbers(self, text: str, flow: Flow) -> bool:
        """Whether all that is put into a computation is a number."""
        for match in re.finditer(r"\$(?:(\w+)|\{(\w+)\}|([#?]))|[`$]|[A-Za-z_]\w*\[", text):
            name = match[1] or match[2]
            word = flow.variables.get(name or "")
            if not (match[3] or (word is not None and word.text is not None and word.text.isdigit())):
                return False
        return True

    def _arithmetic(self, node: Node, flow: Flow) -> None:
        text = _text(node)
        names = set(re.findall(r"[A-Za-z_]\w*", text))
        known = all(name in flow.variables and re.fullmatch(r"\d+", flow.variables[name].text or "") for name in names)
        if re.search(r"[`\[]|\$[({]", text[3:]) or not (known or not names):
            self.found.why("arithmetic that is computed")
        for name in names:
            flow.variables[name] = _UNKNOWN

    # -- simple commands ---------------------------------------------------------------------------------------------

    def _variable_assignments(self, node: Node, flow: Flow) -> None:
        for child in node.named_children:
            self._statement(child, flow)

    def _variable_assignment(self, node: Node, flow: Flow) -> None:
        name, word = self._assigned(node, flow)
        flow.variables[name] = word
        if not _LOCAL.fullmatch(name) or re.match(r"npm_|\w+_proxy", name):
            flow.sets[name] = None

    def _assigned(self, node: Node, flow: Flow) -> tuple[str, Word]:
        """The name and value of an assignment."""
        target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        name = _text(target)
        if target is None or target.type != "variable_name" or (value is not None and value.type == "array") or \
                any(child.type == "+=" for child in node.children):  # fmt: skip
            if target is not None and not re.fullmatch(r"\w+(\[\d+\])?", name, re.ASCII):
                self.found.why("an assignment that computes")
            self._inner(node, flow)
            return re.split(r"\W", name)[0], _SPLIT
        if value is not None and self.raw[value.start_byte - 1 : value.start_byte] != b"=":
            self.found.why("an assignment that is not understood")
        words = [] if value is None else self._words(value, flow)
        word = words[0] if len(words) == 1 else Word("") if value is None else _SPLIT
        if word.text is not None and not word.glob and word.text.startswith("~"):
            word = Word(self.found.at_home(word.text)) if value is not None and value.type == "word" else word
        return name, word

    def _declaration_command(self, node: Node, flow: Flow) -> None:
        words = [Word(node.children[0].type)]
        for child in node.named_children:
            if child.type == "variable_assignment":
                name, word = self._assigned(child, flow)
                flow.variables[name] = word
                flow.sets[name] = None
                words.append(Word(f"{name}={word.text}") if word.text is not None and not word.glob else _UNKNOWN)
            elif child.type == "variable_name":
                words.append(Word(_text(child)))
                flow.sets[_text(child)] = None
            else:
                given = self._words(child, flow)
                words += given
                if any(one.text is None or not re.fullmatch(r"-[xrgaAp]+", one.text) for one in given):
                    self.found.why("a declaration that is not understood")
        self.found.start(words, [], flow.cwd)

    def _unset_command(self, node: Node, flow: Flow) -> None:
        words = [Word("unset"), *(word for child in node.named_children for word in self._words(child, flow))]
        if any(word.text is None or not re.fullmatch(r"-v|\w+", word.text, re.ASCII) for word in words):
            self.found.why("an unset that is not understood")
        for word in words[1:]:
            flow.sets[word.text or "?"] = None
            flow.variables[word.text or "?"] = Word("")
        self.found.start(words, [], flow.cwd)

    def _command(self, node: Node, flow: Flow) -> None:
        outer, sets, words, end = flow.source, dict(flow.sets), list[Word](), -1
        for name, child in _fields(node):
            if child.type == "variable_assignment":
                sets[self._assigned(child, flow)[0]] = None
            elif name == "redirect":
                flow.source = self._redirect(child, flow)
            elif child.type == "comment":
                continue
            elif child.type == "$":
                self.found.why("a text that is translated")
            else:
                if child.start_byte == end:
                    self.found.why("words that nothing divides")
                words += self._words(child, flow)
                end = child.end_byte
        if not words:
            self.found.why("a command without a name")
            return
        first = words[0]
        if first.shown is not None and (not first.shown.isascii() or re.match(r"[=~]|$", first.shown)):
            self.found.why("a program's name holds strange letters")
        self._run(words, sets, flow)
        self.last = words
        flow.source = outer

    def _run(self, words: list[Word], sets: dict[str, None], flow: Flow) -> None:
        """Note that a program is started, and what its arguments say."""
        asked = Asked(
            words=words, sets=list(sets), cwd=flow.cwd, found=self.found, words_before=list(flow.source.words),
            text=flow.source.text, piped=flow.source.piped, nested=self._nested,
        )  # fmt: skip
        understand(asked)
        if words[0].text in ("cd", "chdir"):
            self._cd(words[1:], flow)
        elif words[0].text in ("pushd", "popd"):
            flow.cwd = None
        elif words[0].text in ("read", "mapfile", "readarray"):
            for word in words[1:]:
                if word.text is not None and not word.text.startswith("-"):
                    flow.variables[word.text] = _SPLIT
                    if not _LOCAL.fullmatch(word.text):
                        flow.sets[word.text] = None

    def _nested(self, line: str, cwd: str | None, sets: list[str]) -> None:
        """A line that another program hands to a shell."""
        flow = Flow(cwd)
        flow.sets = dict.fromkeys(sets)
        _Line(line, self.found, self.depth + 1).statements(flow)

    def _cd(self, words: list[Word], flow: Flow) -> None:
        given = [word for word in words if word.text not in ("--", "-P", "-L")]
        text = given[0].text if len(given) == 1 and not given[0].glob else self.found.home if not given else None
        if text is None or text.startswith("-") or (flow.cwd is None and not text.startswith("/")):
            flow.cwd = None
            return
        folder = posixpath.normpath(posixpath.join(flow.cwd or "/", text))
        flow.cwd = folder if os.path.isdir(folder) else None

    # -- words -------------------------------------------------------------------------------------------------------

    def _inner(self, node: Node, flow: Flow) -> None:
        """Walk the commands that stand within something that is no statement."""
        for child in node.children:
            if child.type in ("command_substitution", "process_substitution"):
                self._substitution(child, flow)
            elif child.type in ("arithmetic_expansion", "ansi_c_string", "expansion", "string", "array"):
                self._words(child, flow)
            else:
                self._inner(child, flow)

    def _substitution(self, node: Node, flow: Flow) -> None:
        if _text(node).startswith("`") and "\\" in _text(node):
            self.found.why("backquotes within backquotes")
        inner = flow.copy()
        for child in node.named_children:
            if child.type == "file_redirect":
                self._file_redirect(child, inner)
            else:
                self._statement(child, inner)

    def _words(self, node: Node, flow: Flow) -> list[Word]:
        """The words that a node stands for: one, but for braces that list several."""
        kind = node.type
        if kind in ("command_name", "translated_string") and len(node.named_children) == 1:
            return self._words(node.named_children[0], flow)
        raw = _text(node)
        if kind in ("word", "concatenation", "number") and re.search(r"\{[^'\"\\$`\s]*(?:,|\.\.)", raw):
            listed = _braces(raw) if _PLAIN.fullmatch(re.sub(r"[{}~]", "", raw)) else []
            if not listed:
                self.found.why("braces that are not understood")
                self._inner(node, flow)
                return [_SPLIT]
            return [Word(None if one[:1] == "~" and self.moved else self.found.at_home(one)) for one in listed]
        return [self._word(node, flow)]

    def _word(self, node: Node, flow: Flow) -> Word:
        kind, raw = node.type, _text(node)
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
            self._substitution(node, flow)
            return Word(_PIPE)
        if kind == "arithmetic_expansion":
            self._arithmetic(node, flow)
            self._inner(node, flow)
            return Word(None)
        if kind == "concatenation":
            return self._joined(node, flow)
        if kind not in ("ansi_c_string", "brace_expression"):
            self.found.why(f"{kind} is not understood")
        self._inner(node, flow)
        return _SPLIT

    def _expansion(self, node: Node, raw: str, flow: Flow) -> Word:
        if match := re.fullmatch(r"\$\{(\w+)\}", raw, re.ASCII):
            return self._variable(match[1], flow)
        if not re.fullmatch(r"\$\{#?\w+(?:\[[\w@*]+\])?(?::?[-+=?][\w./-]*)?\}", raw, re.ASCII):
            self.found.why("an expansion that is not understood")
        if "=" in raw:
            flow.sets[re.sub(r"\W", "", raw.split("=", maxsplit=1)[0])] = None
        self._inner(node, flow)
        return _SPLIT

    def _plain(self, node: Node, raw: str) -> Word:
        parent = node.parent
        quoted = re.sub(r"\\(.)", r"\1", raw, flags=re.DOTALL)
        if parent is not None and parent.type != "concatenation":
            quoted = self.found.at_home(quoted) if raw[:1] == "~" and not self.moved else quoted
            if quoted.startswith("~"):
                return _UNKNOWN
        if not _WILD.search(re.sub(r"\\.", "", raw)) or raw in ("[", "]"):
            return Word(quoted)
        pattern = re.sub(r"\\(.)", lambda match: glob.escape(match[1]), raw, flags=re.DOTALL)
        return Word(self.found.at_home(pattern), glob=True)

    def _quoted(self, node: Node, flow: Flow) -> Word:
        made: list[str] | None = []
        at = node.start_byte + (2 if _text(node).startswith("$") else 1)
        for child in node.children:
            if child.type == '"' or child.type == '$"':
                continue
            between = _unescaped(self.raw[at : child.start_byte].decode("utf-8", "replace"))
            at = child.end_byte
            if child.type == "string_content" or not child.is_named:
                text: str | None = _unescaped(_text(child))
            elif name := re.fullmatch(r"\$(?:(\w+)|\{(\w+)\})", _text(child), re.ASCII):
                text = self._variable(name[1] or name[2], flow, quoted=True).shown
            else:
                text = self._word(child, flow).shown
            made = None if made is None or text is None else [*made, between, text]
        if made is not None:
            made.append(_unescaped(self.raw[at : node.end_byte - 1].decode("utf-8", "replace")))
        inner = [child for child in node.named_children if child.type != "string_content"]
        if len(node.named_children) == 1 and inner and inner[0].type == "simple_expansion":
            known = flow.variables.get(_text(inner[0])[1:])
            if known is not None and known.glob:
                return known
        if any(re.fullmatch(r"\$\{?[@*].*|.*\[[@*]\].*", _text(child), re.DOTALL) for child in inner):
            return _SPLIT
        return Word(None if made is None else "".join(made))

    def _variable(self, name: str, flow: Flow, *, quoted: bool = False) -> Word:
        known = flow.variables.get(name)
        if known is None and name == "HOME" and "HOME" not in flow.sets:
            known = Word(self.found.home) if self.found.home else None
        if known is None and name == "PWD" and flow.cwd is not None and "PWD" not in flow.sets:
            known = Word(flow.cwd)
        if known is None or known.text is None:
            return _SPLIT
        return known if quoted or known.glob or _PLAIN.fullmatch(known.text) else _SPLIT

    def _computed(self, node: Node, flow: Flow) -> Word:
        text = _text(node)
        self._substitution(node, flow)
        if text in ("$(pwd)", "`pwd`") and flow.cwd is not None:
            return Word(flow.cwd)
        match = re.fullmatch(r"\$\(\s*cat\s+<<-?\s*(['\"]?)(\w+)\1\n(.*?)\n?[ \t]*\2\s*\)", text, re.DOTALL)
        if (
            match
            and (match[1] or not re.search(r"[`\\$]", match[3]))
            and not re.search(rf"^\s*{match[2]}$", match[3], re.MULTILINE)
        ):
            return Word(match[3])
        return _SPLIT

    def _joined(self, node: Node, flow: Flow) -> Word:
        made, wild, split = [], False, False
        for number, child in enumerate(node.children):
            word = self._word(child, flow)
            if number == 0 and child.type == "word" and word.text is not None and word.text.startswith("~"):
                rest = _text(node)[1:]
                if rest[:1] not in ("/", "") or not self.found.home or self.moved:
                    word = _UNKNOWN
                else:
                    word = Word(self.found.at_home(word.text or ""), word.glob)
            split = split or word.split or word.text is None
            quoted = child.type in ("raw_string", "string")
            wild = wild or (word.glob and not quoted)
            made.append((word.text or "", word.glob))
        if split:
            return _SPLIT
        raw = "".join(_text(child) for child in node.children if child.type == "word")
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


def _is_cd(node: Node) -> bool:
    return node.type == "command" and _text(node).split()[:1] == ["cd"]


def _fields(node: Node) -> list[tuple[str | None, Node]]:
    return [(node.field_name_for_child(number), child) for number, child in enumerate(node.children)]


def _text(node: Node | None) -> str:
    return node.text.decode("utf-8", "surrogatepass") if node is not None and node.text is not None else ""


def _depth(node: Node) -> int:
    deepest, left = 0, [(node, 1)]
    while left:
        one, depth = left.pop()
        deepest = max(deepest, depth)
        left += ((child, depth + 1) for child in one.children)
    return deepest


def _leaves(node: Node | None) -> list[Node]:
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
