"""Drawn command lines, and what bash makes of them: which programs it starts, with which arguments."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

WORDS = ("a", "b", "ab", "c", "x", "a1", "*", "a?", "~", "#", "{a,b}", "a=b", "!", "[ab]1", "-", "1")
QUOTED = ("a", "b c", "#", "$x", "\\", "\n", "")
DOUBLE = ("a", "$x", "b c", "\\$", '\\"', "#", "\n", "'", "\\\n")
ESCAPED = ("\\a", "\\;", "\\ ", "\\#", "\\&", "\\\n", "\\$")
ODD = ("$'a'", "$((1))", "$1", "${x:-b}", '$"a"', "{a..b}", "a{b,c}", "$?", "$#", "$", "${x}")
REDIRECTIONS = (">f", ">>f", "<a1", "2>&1", "2>f", "&>f", ">&2", "<<<a", ">|f", ">$x", ">'f'", "2 >f", "> f", "<&1")
BETWEEN = (";", "&&", "||", "|", "\n", " & ", " ; ", " && ", " |\n", "|&", ";\n", " # c\n", "#c\n")
BEFORE = (
    "time ", "command ", "exec ", "builtin ", "env ", "eval ", "[ a ] && ", "x=a; ", "x='a b'; ", "export x=c; ",
    "read x <<< a; ", "set -- a; ", "! ", "time x=b ", "cd d && ", "cd d; ", "cd d || ", "cd .. && ", "cd $x && ",
    "cd d & ", "cd nowhere; ",
)  # fmt: skip
CHARACTERS = ("", " ", "'", '"', "\\", ";", "\n", "#", "$", "(", ")", "{", "}", "&", "|", "<", ">", "`", "~", "=")
END = "END\x01END"
STUB = '#!/bin/sh\nprintf "%s\\0" "${{0##*/}}" "$@" "$(printf "END\\1END")" >> {log}\necho a\n'


class Lines:
    """Draws command lines."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def line(self) -> str:
        """A line; of some, a character or two are taken out, added or changed."""
        line = self._command(self._random.randint(0, 3))
        if self._random.random() < 0.35:
            for _ in range(self._random.randint(1, 2)):
                at = self._random.randrange(len(line) or 1)
                line = line[:at] + self._random.choice(CHARACTERS) + line[at + self._random.randint(0, 1) :]
        return line

    def _command(self, depth: int) -> str:
        pick, kind = self._random.choice, self._random.random()
        if depth <= 0 or kind < 0.45:
            return self._simple(depth)
        first, second = self._command(depth - 1), self._command(depth - 1)
        if kind < 0.6:
            return first + pick(BETWEEN) + second
        if kind < 0.72:
            return pick((f"( {first} )", f"( {first}\n)", f"{{ {first}; }}", f"{{ {first}\n}}"))
        if kind < 0.78:
            return pick((f"if {first}; then {second}; fi", f"if {first}; then {second}; else {second}; fi"))
        if kind < 0.84:
            values = pick(("a b", "*", "'a b'", "$x", "a1"))
            return f"for x in {values}; do {first}; done"
        if kind < 0.92:
            behind = pick(("", f" | {self._simple(0)}", " >f", f" && {self._simple(0)}", f"; {self._simple(0)}"))
            body = pick(("a", "$x", "$(a)", "", "'", "\ta"))
            start = pick(("E", "'E'", "-E", "\\E"))
            return f"{self._simple(depth)} <<{start}{behind}\n{body}\nE\n" + pick(("", first))
        if kind < 0.95:
            return f"case {self._word(0)} in " + pick(("a", "*", "x|a", "(a")) + f") {first};; esac"
        return pick(BEFORE) + first

    def _simple(self, depth: int) -> str:
        pick = self._random.choice
        words = [pick(("a", "b", "ab", "c", self._word(depth), "x=a", "x=b a", "$x", "'a'", "\\a", "x=$ a"))]
        words += (self._word(depth) for _ in range(self._random.randint(0, 3)))
        if self._random.random() < 0.2:
            words.insert(self._random.randint(0, len(words)), pick(REDIRECTIONS))
        return pick((" ", " ", " ", "  ", "\t", " \\\n", "\\\n")).join(words)

    def _word(self, depth: int) -> str:
        pick, kind = self._random.choice, self._random.random()
        if kind < 0.35:
            return pick(WORDS)
        if kind < 0.45:
            return f"'{pick(QUOTED)}'"
        if kind < 0.6:
            inner = f"$({self._command(depth - 1)})" if depth > 0 else "$x"
            return '"' + pick(DOUBLE) + pick(("", inner, "$x", "${x}")) + '"'
        if kind < 0.68:
            return pick(ESCAPED)
        if kind < 0.76:
            return pick(("$x", "${x}"))
        if kind < 0.84 and depth > 0:
            return pick(("$({})", "`{}`", "<({})")).format(self._command(depth - 1))
        return pick(ODD) if kind < 0.9 else self._word(depth) + self._word(depth)


class Bash:
    """A folder in which bash runs lines; all programs that it finds only note that they were started."""

    def __init__(self, folder: Path) -> None:
        self.work, self._programs, self._log = folder / "work", folder / "programs", folder / "log"
        self._programs.mkdir(parents=True)
        for name in ("a", "b", "ab", "ba", "c"):
            path = self._programs / name
            path.write_text(STUB.format(log=self._log))
            path.chmod(0o755)
        self.clear()

    def clear(self) -> None:
        """The folder as it is before each line."""
        shutil.rmtree(self.work, ignore_errors=True)
        (self.work / "d").mkdir(parents=True)
        (self.work / "a1").touch()
        (self.work / "b1").touch()

    def started(self, line: str) -> tuple[list[list[str]], set[str]]:
        """The programs that bash starts, with their arguments, and the files that it makes."""
        self.clear()
        self._log.unlink(missing_ok=True)
        environ = {"PATH": str(self._programs), "HOME": str(self.work.parent)}
        ended, held = os.pipe()  # all processes hold it, also those in the background
        with open(ended, "rb") as all_ended:
            try:
                subprocess.run(["/bin/bash", "-c", line], cwd=self.work, env=environ, stdin=subprocess.DEVNULL,
                               capture_output=True, timeout=60, check=False, pass_fds=(held,))  # fmt: skip
            finally:
                os.close(held)
            all_ended.read()
        noted = self._log.read_text("utf-8", "replace") if self._log.exists() else ""
        made = {str(path) for path in self.work.rglob("*")} - {f"{self.work}/{name}" for name in ("a1", "b1", "d")}
        return [one.split("\0")[:-1] for one in noted.split(f"{END}\0") if one], made


def fits(argv: Sequence[str], words: Sequence[str | None]) -> bool:
    """Whether these arguments are as the words say; one that is not known may be any, several or none."""
    if not words:
        return not argv
    if words[0] is None:
        return any(fits(argv[number:], words[1:]) for number in range(len(argv) + 1))
    return bool(argv) and argv[0] == words[0] and fits(argv[1:], words[1:])
