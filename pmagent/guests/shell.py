"""A command line, taken apart: the programs that it would start, and the files and hosts that it would touch.

It is parsed with tree-sitter-bash. Every part of the tree must be known here; anything else makes the line not
understood, and so does a place where bash and the parser may differ. Programs' arguments are read by
``pmagent.guests.programs``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Final

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from pmagent.guests.gathered import Gathered, Word, strange
from pmagent.guests.programs import Asked
from pmagent.guests.single_programs import understand
from pmagent.guests.words import ROUNDS_MAX, SPLIT, UNKNOWN, Flow, Source, Words, depth_of, leaves_of, text_of

LINE_BYTES_MAX: Final = 64 * 1024
DEPTH_MAX: Final = 60
"""Deepest nesting that is looked into."""
_STATEMENTS: Final = frozenset((
    "program", "subshell", "compound_statement", "do_group", "else_clause", "elif_clause", "if_statement",
    "case_item", "negated_command", "variable_assignments",
))  # fmt: skip
_BRANCHES: Final = ("if_statement", "else_clause", "elif_clause", "case_item")
_ENDS: Final = re.compile(r"(?:exit|return)\b")


@cache
def parser_name() -> str:
    """The parser and its version, as it stands with what it understood."""
    return f"tree-sitter-bash {version('tree-sitter-bash')}, tree-sitter {version('tree-sitter')}"


def read_line(line: str, gathered: Gathered, cwd: str | None) -> None:
    """Take a command line apart, into ``gathered``."""
    _Line(line, gathered, 0).statements(Flow(cwd))


@cache
def _language() -> Language:
    return Language(tree_sitter_bash.language())


class _Line(Words):
    def __init__(self, line: str, gathered: Gathered, depth: int) -> None:
        self.found = gathered
        self.depth = depth
        self.raw = line.encode("utf-8", "surrogatepass")
        self.root: Node | None = None
        self._behind: dict[int, list[Node]] = {}  # redirections of a list or pipe, by its last command: it has them
        self.last: list[Word] = []  # the words of the simple command that was walked last
        self.moved = "HOME" in line and re.search(r"HOME\W*=|HOME\b.*\bin\b|read\b.*HOME", line) is not None
        """Whether ``~`` may mean another folder than this user's."""
        if len(self.raw) > LINE_BYTES_MAX:
            gathered.why("the line is very long")
        elif re.search(r"[\x00-\x08\x0b-\x1f\x7f]", line):
            gathered.why("the line holds control characters")
        elif re.search(r"\{\w+\}[<>]", line):
            gathered.why("a redirection that sets a variable")
        elif depth > 4:
            gathered.why("lines within lines, too deep")
        else:
            self.root = Parser(_language()).parse(self.raw).root_node
            if depth_of(self.root) > DEPTH_MAX:
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
        for leaf in leaves_of(self.root):
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
            elif leaf.type == "word" and re.search(rb"[`\n]|(?<!\\)[ \t]", leaf.text or b""):
                self.found.why("a backquote or white space within a word")
            at, last = max(at, leaf.end_byte), leaf
        if self.raw[at:].strip(b" \t\n") or (last is not None and last.is_missing):
            self.found.why("the line holds characters that the parser passes over")

    # -- statements --------------------------------------------------------------------------------------------------

    def _statement(self, node: Node, flow: Flow) -> None:
        if redirects := self._behind.pop(node.id, None):
            self._redirected(node, redirects, flow)
            return
        kind = node.type
        handler = getattr(self, f"_{kind}", None)
        if kind in _STATEMENTS:
            self._block(node, flow)
        elif handler is not None:
            handler(node, flow)
        elif node.is_named and kind not in ("comment", "file_descriptor"):
            self.found.why(f"{kind} is not understood" if not node.is_error else "the line cannot be parsed")
            self.inner(node, flow)

    def _block(self, node: Node, flow: Flow) -> None:
        kind = node.type
        inner = flow.copy() if kind == "subshell" else flow
        before = flow.copy()
        for name, child in _fields(node):
            behind = child.next_sibling
            if kind == "case_item" and name == "value":
                self.inner(child, inner)
            elif child.is_named and behind is not None and behind.type == "&":
                self._statement(child, inner.copy())
            elif child.is_named:
                self._statement(child, inner)
                if kind in _BRANCHES:
                    inner.blur(before)
            elif kind == "compound_statement" and child.type == "((":
                self.arithmetic(node, flow)

    def _while_statement(self, node: Node, flow: Flow) -> None:
        self._rounds(node.named_children, flow)

    def _rounds(self, nodes: Sequence[Node], flow: Flow) -> None:
        """Read a loop's body again: the second round may begin otherwise than the first."""
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
            if not both and _ENDS.match(text_of(child)):
                flow.cwd, flow.variables = after.cwd, after.variables
        if not inner and len(children) > 1 and both:
            first = children[0]
            keep = before.copy()
            if first.type == "command" and text_of(first).split()[:1] == ["cd"]:
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
        body = node.child_by_field_name("body")
        redirects = [child for name, child in _fields(node) if name == "redirect"]
        for name, child in _fields(node):
            if name != "redirect" and child.is_named and child != body:
                self._statement(child, flow)
        last = body
        while last is not None and last.type in ("list", "pipeline", "negated_command") and last.named_children:
            last = last.named_children[-1]
        if body is None or last is None or last == body:
            self._redirected(body, redirects, flow)
        else:
            self._behind[last.id] = redirects
            self._statement(body, flow)

    def _redirected(self, body: Node | None, redirects: Sequence[Node], flow: Flow) -> None:
        outer = flow.source
        for one in redirects:
            flow.source = self._redirect(one, flow)
        if body is not None:
            self._statement(body, flow)
        flow.source = outer

    def _redirect(self, node: Node, flow: Flow) -> Source:
        """Note a redirection; what the program then reads on its standard input."""
        if node.type == "heredoc_redirect":
            return self._heredoc(node, flow)
        if node.type == "herestring_redirect":
            words = [word for child in node.named_children for word in self.words(child, flow)]
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
                self.words(child, flow)
            elif child.is_named and child.type not in ("heredoc_end", "file_descriptor"):
                before = flow.copy()
                self._statement(child, flow.copy(Source(piped=True)))
                flow.blur(before)
        text = text_of(body)
        if start is not None and re.search(r"['\"\\]", text_of(start)):
            return Source(text=text, piped=True)
        if body is not None:
            self.inner(body, flow)
        if "`" in text or (re.search(r"\$[({\[]", text) and body is not None and not body.named_children):
            self.found.why("a here-document that is computed")
        return Source(text=None if re.search(r"[`\\]|\$[({\[\w]", text) else text, piped=True)

    def _file_redirect(self, node: Node, flow: Flow) -> None:
        operator = next((child.type for child in node.children if not child.is_named), "")
        words = [word for name, child in _fields(node) if name == "destination" for word in
                 self.words(child, flow)]  # fmt: skip
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
        name = text_of(node.child_by_field_name("variable"))
        values = [word for field, child in _fields(node) if field == "value" for word in
                  self.words(child, flow)]  # fmt: skip
        body = node.child_by_field_name("body")
        before = flow.copy()
        known = 0 < len(values) <= ROUNDS_MAX and not any(word.split for word in values)
        for value in values if known else [UNKNOWN]:
            flow.assign(name, value)
            if body is not None:
                self._rounds([body], flow)
            flow.blur(before)

    def _c_style_for_statement(self, node: Node, flow: Flow) -> None:
        body = node.child_by_field_name("body")
        text = text_of(node)[: (body.start_byte - node.start_byte) if body is not None else None]
        if re.search(r"[$`\[]", text):
            self.found.why("arithmetic that is computed")
        for match in re.finditer(r"[A-Za-z_]\w*", text):
            flow.variables[match[0]] = Word(None)
        if body is not None:
            self._rounds([body], flow)

    def _case_statement(self, node: Node, flow: Flow) -> None:
        for name, child in _fields(node):
            if name == "value":
                self.words(child, flow)
            elif child.is_named:
                self._statement(child, flow)

    def _function_definition(self, node: Node, flow: Flow) -> None:
        self.found.why("it defines a function")
        body = node.child_by_field_name("body")
        if body is not None:
            self._statement(body, flow.copy(Source()))

    def _test_command(self, node: Node, flow: Flow) -> None:
        self.found.start([Word(node.children[0].type)], [*flow.sets], flow.cwd)
        text = text_of(node)
        if "\n" in text:
            self.found.why("a test over several lines")
        if re.search(r"\s-(?:v|R|eq|ne|lt|gt|le|ge)\s", text) and re.search(r"[$`]|\w\[", text) and \
                not self._numbers(text, flow):  # fmt: skip
            self.found.why("a test that computes")
        self.inner(node, flow)

    def _numbers(self, text: str, flow: Flow) -> bool:
        """Whether all that is put into a computation is a number."""
        for match in re.finditer(r"\$(?:(\w+)|\{(\w+)\}|([#?]))|[`$]|[A-Za-z_]\w*\[", text):
            name = match[1] or match[2]
            word = flow.variables.get(name or "")
            if not (match[3] or (word is not None and word.text is not None and word.text.isdigit())):
                return False
        return True

    # -- simple commands ---------------------------------------------------------------------------------------------

    def _variable_assignment(self, node: Node, flow: Flow) -> None:
        name, word = self._assigned(node, flow)
        flow.assign(name, word)

    def _assigned(self, node: Node, flow: Flow) -> tuple[str, Word]:
        """The name and value of an assignment."""
        target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        name = text_of(target)
        if target is None or target.type != "variable_name" or (value is not None and value.type == "array") or \
                any(child.type == "+=" for child in node.children):  # fmt: skip
            if target is not None and not re.fullmatch(r"\w+(\[\d+\])?", name, re.ASCII):
                self.found.why("an assignment that computes")
            self.inner(node, flow)
            return re.split(r"\W", name)[0], SPLIT
        if value is not None and self.raw[value.start_byte - 1 : value.start_byte] != b"=":
            self.found.why("an assignment that is not understood")
        words = [] if value is None else self.words(value, flow)
        word = words[0] if len(words) == 1 else Word("") if value is None else SPLIT
        if word.text is not None and not word.glob and word.text.startswith("~"):
            word = Word(self.found.at_home(word.text)) if value is not None and value.type == "word" else word
        return name, word

    def _declaration_command(self, node: Node, flow: Flow) -> None:
        words = [Word(node.children[0].type)]
        if words[0].text == "readonly":
            self.found.why("a variable that cannot be changed later")
        for child in node.named_children:
            if child.type == "variable_assignment":
                name, word = self._assigned(child, flow)
                flow.assign(name, word)
                flow.sets[name] = None
                words.append(Word(f"{name}={word.text}") if word.text is not None and not word.glob else UNKNOWN)
            elif child.type == "variable_name":
                words.append(Word(text_of(child)))
                flow.sets[text_of(child)] = None
            else:
                given = self.words(child, flow)
                words += given
                if any(one.text is None or not re.fullmatch(r"-[xgaAp]+", one.text) for one in given):
                    self.found.why("a declaration that is not understood")
        self.found.start(words, [], flow.cwd)

    def _unset_command(self, node: Node, flow: Flow) -> None:
        words = [Word("unset"), *(word for child in node.named_children for word in self.words(child, flow))]
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
                target = self._assigned(child, flow)[0]
                sets[target] = None
                flow.variables[target] = SPLIT  # in some shells it stays
            elif name == "redirect":
                flow.source = self._redirect(child, flow)
            elif child.type == "comment":
                continue
            elif child.type == "$":
                self.found.why("a text that is translated")
            else:
                if child.start_byte == end:
                    self.found.why("words that nothing divides")
                words += self.words(child, flow)
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
            start=understand,
        )  # fmt: skip
        understand(asked)
        if words[0].text == "time":  # a word of the language: variables behind it stay
            for name in (match[1] for word in words if (match := re.match(r"(\w+)=", word.text or ""))):
                flow.assign(name, SPLIT)
        if words[0].text in ("cd", "chdir"):
            self._cd(words[1:], flow)
        elif words[0].text in ("pushd", "popd"):
            flow.cwd = None
        elif words[0].text in ("read", "mapfile", "readarray"):
            for word in words[1:]:
                if word.text is not None and not word.text.startswith("-"):
                    flow.assign(word.text, SPLIT)

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
        flow.cwd = folder if self.found.files.is_folder(folder) else None

    def substitution(self, node: Node, flow: Flow) -> None:
        if text_of(node).startswith("`") and "\\" in text_of(node):
            self.found.why("backquotes within backquotes")
        inner = flow.copy()
        for child in node.named_children:
            if child.type == "file_redirect":
                self._file_redirect(child, inner)
            else:
                self._statement(child, inner)


def _fields(node: Node) -> list[tuple[str | None, Node]]:
    return [(node.field_name_for_child(number), child) for number, child in enumerate(node.children)]
