"""Rules of other programs as a policy of ours: permissions of Claude Code, ``.rules`` of Codex, policies of Gemini CLI
(docs/policy.md). A rule that has no counterpart is left out and told; one that forbids becomes a question about the
whole tool, so that nothing is forgotten silently."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any, Final

import msgspec

from pmagent.actors.guests.matching import pattern
from pmagent.actors.guests.paths import BadRule
from pmagent.contracts.guest_calls import Answer
from pmagent.contracts.text import from_json
from pmagent.guests.policy import BadPolicy

_COMBINATIONS_MAX: Final = 200
_WORD: Final = re.compile(r"[^\s()*\"']+")
_CODEX: Final[dict[str, Answer]] = {"allow": "allow", "prompt": "ask", "forbidden": "deny"}
_GEMINI: Final[dict[str, Answer]] = {"allow": "allow", "ask_user": "ask", "deny": "deny"}
_GEMINI_TOOLS: Final = {
    "run_shell_command": "Bash", "read_file": "Read", "read_many_files": "Read", "list_directory": "Read",
    "glob": "Read", "search_file_content": "Read", "grep_search": "Read", "write_file": "Edit", "replace": "Edit",
    "web_fetch": "WebFetch",
}  # fmt: skip


class Imported(msgspec.Struct):
    """Rules by their answer, and what was left out, for people."""

    rules: dict[Answer, list[str]] = msgspec.field(default_factory=lambda: {"deny": [], "ask": [], "allow": []})
    left_out: list[str] = []

    def take(self, answer: Answer, match: str, tool: str) -> None:
        """Take a rule over, or say why not. ``tool``: the tool of which it speaks."""
        try:
            pattern(re.sub(r"\(~", "(/", match))
        except BadRule as error:
            self.leave(answer, match, tool, error.message)
            return
        if match not in self.rules[answer]:
            self.rules[answer].append(match)

    def leave(self, answer: Answer, what: str, tool: str, why: str) -> None:
        """Leave a rule out; one that does not allow makes every call of its tool a question."""
        self.left_out.append(f"{answer} {what[:80]}: {why}")
        if answer != "allow" and tool not in self.rules["ask"]:
            self.rules["ask"].append(tool)

    def yaml(self, where: str) -> str:
        """The text of a policy."""
        lines = [f"# From {where}. pmagent policy check reads it.", "version: 1", "default: ask"]
        lines += [f"# left out: {one}" for one in self.left_out]
        for answer, rules in self.rules.items():
            if rules:
                lines += ["", f"{answer}:", *(f"  - {_scalar(one)}" for one in rules)]
        return "\n".join(lines) + "\n"


def _scalar(text: str) -> str:
    plain = re.fullmatch(r"[A-Za-z][\w()./*~:+=@ -]*", text, re.ASCII) and ": " not in text and not text.endswith(":")
    return text if plain else json.dumps(text)


def from_claude(text: str, where: str) -> Imported:
    """The permissions of a ``settings.json``. Raises BadText, BadPolicy."""
    value = from_json(text, where)
    permissions = value.get("permissions", {}) if isinstance(value, dict) else None
    if not isinstance(permissions, dict):
        raise BadPolicy(f"{where} holds no permissions", "name a settings.json of Claude Code")
    made = Imported()
    for answer in made.rules:
        for match in permissions.get(answer) or ():
            if not isinstance(match, str):
                raise BadPolicy(f"{where}: permissions.{answer} holds no text", "correct it there")
            tool = match.split("(")[0]
            made.take(answer, re.sub(r"^Bash\((.+?):\*\)$", r"Bash(\1 *)", match), tool)
    folders = permissions.get("additionalDirectories") or []
    made.rules["allow"] += ["Read(./**)", *(f"Read(/{one})" for one in folders if str(one).startswith("/"))]
    mode = permissions.get("defaultMode")
    if mode == "acceptEdits":
        made.rules["allow"].append("Edit(./**)")
    elif mode not in (None, "default"):
        made.left_out.append(f"defaultMode {mode}: what no rule speaks of is asked")
    return made


def from_codex(text: str, where: str) -> Imported:
    """``prefix_rule`` and ``network_rule`` of a ``.rules`` file. Raises BadPolicy."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 0) or 0
        raise BadPolicy(f"{where}:{line} cannot be read", "name a .rules file of Codex") from error
    made = Imported()
    for node in tree.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            _codex_rule(node.value.func.id, node.value, made, f"{where}:{node.lineno}")
        else:
            made.left_out.append(f"line {node.lineno}: it is no rule")
    return made


def _codex_rule(name: str, call: ast.Call, made: Imported, where: str) -> None:
    try:
        given = {one.arg or "": ast.literal_eval(one.value) for one in call.keywords}
    except (ValueError, TypeError):
        made.leave("deny", where, "Bash", "its values are computed")
        return
    answer = _CODEX.get(str(given.get("decision", "allow")))
    if answer is None:
        raise BadPolicy(f"{where}: decision is {given.get('decision')}", f"there are: {', '.join(_CODEX)}")
    if name == "network_rule" and isinstance(given.get("host"), str):
        made.take(answer, f"WebFetch(domain:{given['host']})", "WebFetch")
        return
    words = given.get("pattern")
    if name != "prefix_rule" or not isinstance(words, list) or not words:
        made.leave(answer, where, "Bash", f"{name} has no counterpart")
        return
    choices = [one if isinstance(one, list) else [one] for one in words]
    for some in islice(product(*choices), _COMBINATIONS_MAX + 1):
        if all(isinstance(one, str) and _WORD.fullmatch(one) for one in some):
            made.take(answer, f"Bash({' '.join(some)} *)", "Bash")
        else:
            made.leave(answer, where, "Bash", "a word with blanks, quotes or brackets")


def from_gemini(text: str, where: str) -> Imported:
    """The ``[[rule]]`` tables of a policy. Raises BadPolicy."""
    try:
        rules = tomllib.loads(text).get("rule")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadPolicy(f"{where} is not TOML: {error}", "name a policy of Gemini CLI") from error
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise BadPolicy(f"{where} holds no [[rule]]", "name a policy of Gemini CLI")
    made = Imported()
    for number, rule in enumerate(rules, 1):
        answer = _GEMINI.get(str(rule.get("decision")))
        if answer is None:
            what = f"{where}: rule {number} decides {rule.get('decision')}"
            raise BadPolicy(what, f"there are: {', '.join(_GEMINI)}")
        narrower = [key for key in ("argsPattern", "commandRegex", "modes", "interactive", "subagent") if key in rule]
        for tool, match in _gemini_matches(rule):
            if narrower:
                made.leave(answer, f"rule {number}", tool, f"{narrower[0]} has no counterpart")
            else:
                made.take(answer, match, tool)
    if len({rule.get("priority", 0) for rule in rules}) > 1:
        made.left_out.append("priorities: here the strictest rule decides")
    return made


def _gemini_matches(rule: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The tool and the rule of ours, for each tool of the rule."""
    tools = _several(rule.get("toolName", "*"))
    for name in tools:
        server = rule.get("mcpName")
        tool = f"mcp__{server}__{name}" if server else _GEMINI_TOOLS.get(name, name)
        prefixes = _several(rule["commandPrefix"]) if "commandPrefix" in rule else [""]
        for prefix in prefixes:
            yield tool, f"Bash({prefix} *)" if prefix else tool


def _several(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


READERS: Final[dict[str, Callable[[str, str], Imported]]] = {
    "claude": from_claude, "codex": from_codex, "gemini": from_gemini,
}  # fmt: skip
