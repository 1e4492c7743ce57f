"""The policy's files: ``.pmagent/policy.yaml`` of the workspace, and the user's own, in
``$XDG_CONFIG_HOME/pmagent/policy.yaml`` (docs/policy.md)."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import yaml

from pmagent.actors.guests.matching import pattern
from pmagent.actors.guests.paths import BadRule
from pmagent.contracts.guest_calls import Answer, Layer, LayerName, Policy, Rule, Shape
from pmagent.contracts.shape import Misfit, fit
from pmagent.contracts.text import decoded, from_yaml
from pmagent.events.atomic import read_plain
from pmagent.events.errors import PmagentError
from pmagent.guests import cedar
from pmagent.guests.harnesses import settings_files
from pmagent.workspace.layout import POLICY, POLICY_BYTES_MAX

FILE: Final = POLICY
BYTES_MAX: Final = POLICY_BYTES_MAX
RULES_MAX: Final = 2000
TEMPLATES: Final = Path(__file__).with_name("templates")
_ANSWERS: Final[tuple[Answer, ...]] = ("deny", "ask", "allow")
_LAYERS: Final[tuple[LayerName, ...]] = ("project", "user")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)


class BadPolicy(PmagentError, exit_code=2):
    """A policy that is not understood; the message says where."""


class RuleText(Rule, frozen=True, kw_only=True):
    """A rule as it stands in a file; ``id``: its name, else layer and line."""

    id: str = ""


class PolicyText(Shape, frozen=True, kw_only=True):
    """A policy's file: lists of rules by their answer, as in the permissions of Claude Code, and rules that say
    more."""

    version: Literal[1]
    default: Answer | None = None
    deny: list[str] = []
    ask: list[str] = []
    allow: list[str] = []
    rules: list[RuleText] = []


def read_policy(workspace: Path, session: Sequence[Rule] = (), environ: Mapping[str, str] = os.environ) -> Policy:
    """The policy of a workspace, as its files stand. A file that cannot be used makes its layer's ``problem``, and
    nothing is raised. ``session``: rules that operators made for a while."""
    home = environ.get("HOME", "")
    layers = [
        built_in(environ, workspace),
        _layer("user", user_file(environ), home),
        _layer("project", workspace / FILE, home),
    ]
    files = zip(_LAYERS, cedar_files(workspace, environ), strict=False)
    layers += (one for name, path in files if (one := cedar.layer(name, path)) is not None)
    if session:
        layers.append(Layer(name="session", rules=list(session)))
    return policy_of(layers)


def policy_in_force(workspace: Path, session: Sequence[Rule] = ()) -> Policy:
    """The policy of a workspace, of which the workspace's own files count only as this user has accepted them
    (``pmagent trust``): they come with a repository. A file that is not accepted is a problem of its layer."""
    from pmagent.workspace.trust import unaccepted_policies

    policy = read_policy(workspace, session)
    sums = {one.path: one.sha256 for one in policy.layers if one.name == "project" and one.sha256}
    try:
        read = {os.path.relpath(path, workspace): digest for path, digest in sums.items()}
        refused = {str(workspace / name): "is not accepted" for name in unaccepted_policies(workspace, read)}
    except (PmagentError, OSError) as error:
        refused = {layer.path: f"cannot be accepted: {error}" for layer in policy.layers if layer.name == "project"}
    if not refused:
        return policy
    hint = "pmagent trust shows what is new, and asks"
    return policy_of([
        msgspec.structs.replace(layer, rules=[], default=None, problem=f"{layer.path} {refused[layer.path]} ({hint})")
        if layer.path in refused and layer.sha256 else layer for layer in policy.layers
    ])  # fmt: skip


def policy_files(workspace: Path, environ: Mapping[str, str]) -> list[Path]:
    """Where the rules lie: the workspace's, the user's."""
    own = user_file(environ)
    return [workspace / FILE, *([own] if own is not None else [])]


def cedar_files(workspace: Path, environ: Mapping[str, str]) -> list[Path]:
    """Where policies in Cedar lie: beside the rules."""
    return [one.with_suffix(".cedar") for one in policy_files(workspace, environ)]


def policy_of(layers: list[Layer]) -> Policy:
    """The policy of these layers."""
    return Policy(layers=layers, digest=sha256(msgspec.json.encode(layers, order="deterministic")).hexdigest())


def user_file(environ: Mapping[str, str]) -> Path | None:
    """Where the user's own policy lies; None without a home."""
    folder = config_folder(environ)
    return Path(folder) / "pmagent" / "policy.yaml" if folder else None


def config_folder(environ: Mapping[str, str]) -> str:
    """The folder of this user's settings; "" without a home."""
    home = environ.get("HOME", "")
    given = environ.get("XDG_CONFIG_HOME", "")
    return given if given.startswith("/") else f"{home}/.config" if home else ""


def _layer(name: LayerName, path: Path | None, home: str) -> Layer:
    if path is None:
        return Layer(name=name)
    try:
        raw = read_plain(path, BYTES_MAX)
    except FileNotFoundError:
        problem = f"{path} is a link that leads nowhere" if path.is_symlink() else ""
        return Layer(name=name, path=str(path), problem=problem)
    except OSError as error:
        return Layer(name=name, path=str(path), problem=f"{path} cannot be read: {error.strerror}")
    digest = sha256(raw).hexdigest()
    try:
        read = rules_of(raw, name, str(path), home)
    except PmagentError as error:
        return Layer(name=name, path=str(path), sha256=digest, problem=f"{error.message} ({error.hint})")
    return Layer(name=name, path=str(path), sha256=digest, default=read.default, rules=read.rules)


def rules_of(raw: bytes | str, name: LayerName, where: str, home: str) -> Layer:
    """The layer that a policy's text makes. Raises BadText, BadPolicy, naming file and line."""
    text = decoded(raw, where, BYTES_MAX)
    value = from_yaml(text, where)
    places = _places(text)
    try:
        given = fit(value, PolicyText)
    except Misfit as misfit:
        raise BadPolicy(f"{where}{_place_of(misfit.message, places)}: {misfit.message}", misfit.hint) from misfit
    rules = []
    for answer in _ANSWERS:
        for number, match in enumerate(getattr(given, answer)):
            rules.append((places[f"{answer}[{number}]"], RuleText(match=match, answer=answer)))
    rules += ((places[f"rules[{number}]"], one) for number, one in enumerate(given.rules))
    if len(rules) > RULES_MAX:
        raise BadPolicy(f"{where} holds more than {RULES_MAX} rules", "join some with *")
    made, seen = [], set[str]()
    for (line, column), one in rules:
        place = f"{where}:{line}:{column}"
        rule = _rule(one, place, home, one.id or f"{name}:{line}")
        while rule.id in seen:
            if one.id:
                raise BadPolicy(f"{place}: two rules have the id {rule.id}", "rename one")
            rule = msgspec.structs.replace(rule, id=f"{rule.id}+")  # several rules in one line
        seen.add(rule.id)
        made.append(rule)
    return Layer(name=name, path=where, default=given.default, rules=made)


def _rule(one: RuleText, where: str, home: str, id: str) -> Rule:
    match = at_home(one.match, home)
    try:
        pattern(match)
    except BadRule as error:
        raise BadPolicy(f"{where}: {error.message}", error.hint) from error
    if one.answer is None and one.label is None:
        raise BadPolicy(f"{where}: {one.match} has neither answer nor label", "add answer: ask, or another")
    if not 1 <= one.approvals <= 9 or (one.approvals > 1 and one.answer != "ask"):
        raise BadPolicy(f"{where}: approvals is {one.approvals}", "1 to 9, of a rule whose answer is ask")
    if one.expires and not _TIME.fullmatch(one.expires):
        raise BadPolicy(f"{where}: expires is {one.expires[:40]}", "write a time in UTC, as 2026-12-31T23:59:59Z")
    hours = one.when.hours
    if hours and (len(hours) != 2 or not all(0 <= hour <= 24 for hour in hours)):
        raise BadPolicy(f"{where}: when.hours is {hours}", "write two hours, as [9, 17]")
    return Rule(**(msgspec.structs.asdict(one) | {"id": id, "match": match}))


def session_rule(match: str, approval: int, home: str, expires: str = "", reason: str = "") -> Rule:
    """The rule that an operator makes with the approval of a call, for its session. Raises BadPolicy."""
    given = RuleText(match=match, answer="allow", expires=expires, reason=reason)
    return _rule(given, "the rule", home, f"session {approval}")


def at_home(match: str, home: str) -> str:
    """The rule with ``~`` written out."""
    return re.sub(r"\(\s*~(?=[/)])", lambda _: f"(/{home}", match, count=1) if home.startswith("/") else match


def _places(text: str) -> dict[str, tuple[int, int]]:
    """Where each value of the YAML text stands: its path (``rules[2].when``) -> line and column, counted from 1."""
    found: dict[str, tuple[int, int]] = {}
    left: list[tuple[str, Any]] = [("", yaml.compose(text, Loader=yaml.SafeLoader))]
    while left:
        path, node = left.pop()
        if node is None:
            continue
        found[path] = _counted(node.start_mark)
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                name = f"{path}.{key.value}" if path else str(key.value)
                left.append((name, value))
                found[name] = _counted(key.start_mark)
        elif isinstance(node, yaml.SequenceNode):
            left += ((f"{path}[{number}]", one) for number, one in enumerate(node.value))
    return found


def _counted(mark: Any) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1


def _place_of(message: str, places: Mapping[str, tuple[int, int]]) -> str:
    """``:12:3``, of the longest path that the message names."""
    words = [word.rstrip(":") for word in message.split()]
    known = [word for word in words if word in places and word]
    within = [path for word in words for path in (word.rpartition(".")[0],) if path in places and path]
    path = max(known or within, key=len, default="")
    return ":{}:{}".format(*places[path]) if path else ""


# -- pmagent's own rules ---------------------------------------------------------------------------------------------

_SETTINGS: Final = (
    ".claude/settings.json", ".claude/settings.local.json", ".claude/hooks/**", ".codex/**", ".gemini/settings.json",
    ".gemini/policies/**", ".cursor/hooks.json", ".opencode/**",
)  # fmt: skip
_TOP_SETTINGS: Final = (".github/hooks/**", "opencode.json", "opencode.jsonc")
_HOME_SETTINGS: Final = (
    ".claude.json", ".claude/plugins/**", ".codex/**", ".gemini/**", ".cursor/**", ".copilot/**",
    ".config/opencode/**", ".config/github-copilot/**",
)  # fmt: skip
_MACHINE_SETTINGS: Final = ("/etc/claude-code", "/etc/codex", "/etc/gemini-cli", "/etc/cursor")
_RUNNING: Final = (
    ".claude/skills/**", ".claude/commands/**", ".claude/agents/**", ".claude/plugins/**",
    ".gemini/commands/**", ".gemini/extensions/**", ".cursor/mcp.json",
)  # fmt: skip
"""Files that may hold hooks, servers, or commands of a prompt (``!`...```), which a harness runs without asking us."""
_ACTING: Final = (
    "approvals approve", "approvals reject", "connect", "disconnect", "trust", "resume", "operators", "policy init",
    "policy import", "log adopt", "init", "prune", "down", "daemon", "oa permit", "pla approve", "guest",
)  # fmt: skip
_AGENTS: Final = ("claude", "codex", "gemini", "opencode", "cursor-agent", "copilot")
_ENDING: Final = ("kill", "pkill", "killall", "killall5", "fuser", "xkill")
_READING_WEB: Final = (
    "WebFetch", "WebSearch", "mcp__*", "Bash(curl *)", "Bash(wget *)", "Bash(gh *)", "Bash(glab *)",
)  # fmt: skip


def built_in(environ: Mapping[str, str], workspace: Path) -> Layer:
    """The rules that no file can take away: pmagent's own files and commands, and the settings of the harnesses, also
    where links lead that stand in their place, as the tools for dotfiles make them."""
    home = environ.get("HOME") or os.path.expanduser("~")  # of a daemon that was started without it, too
    config = config_folder(environ)
    state = environ.get("XDG_STATE_HOME", "") or (f"{home}/.local/state" if home else "")
    own = ["Edit(**/.pmagent/**)", "Read(**/.pmagent/data/key)", *(f"Edit(/{one}/pmagent/**)" for one in (config, state)
                                                                  if one.startswith("/"))]  # fmt: skip
    settings = [f"Edit(**/{one})" for one in _SETTINGS] + [f"Edit(./{one})" for one in _TOP_SETTINGS]
    settings += [f"Edit(/{one}/**)" for one in _MACHINE_SETTINGS]
    if home.startswith("/"):
        settings += [f"Edit(/{home.rstrip('/')}/{one})" for one in (*_SETTINGS[:3], *_HOME_SETTINGS)]
    if (given := environ.get("CLAUDE_CONFIG_DIR", "")).startswith("/"):
        settings.append(f"Edit(/{given.rstrip('/')}/settings.json)")
    own += _led_to((*policy_files(workspace, environ), *cedar_files(workspace, environ)))
    settings += _led_to(settings_files(workspace, environ))
    rules = [
        *_named("pmagent-files", own, "deny", "pmagent's own log, settings and keys"),
        *_named("harness-settings", settings, "deny", "settings of the agent's own program, and its hooks"),
        *_named("operators-only", [f"Bash(pmagent {one} *)" for one in _ACTING] + ["Bash(pmagent-hook *)"], "deny",
                "an operator's command"),
        *_named("agents", [f"Bash({one} *)" for one in _AGENTS], "ask", "it starts an agent that may not be gated"),
        *_named("ends-processes", [f"Bash({one} *)" for one in _ENDING], "ask", "it may end the daemon"),
        *_named("mcp-servers", ["Edit(./.mcp.json)"], "ask", "it starts programs"),
        *_named("runs-unasked", [f"Edit(**/{one})" for one in _RUNNING], "ask", "commands in it run unasked"),
    ]  # fmt: skip
    seen = _named("from-outside", _READING_WEB, None, "")
    rules += (msgspec.structs.replace(one, label="untrusted") for one in seen)
    return Layer(name="built-in", rules=rules)


def _led_to(files: Iterable[Path]) -> list[str]:
    """Rules for what files are, where a link on the way leads elsewhere."""
    found = ((os.path.realpath(one), str(one)) for one in files)
    return [f"Edit(/{glob.escape(real)})" for real, path in found if real != path]


def _named(name: str, matches: Iterable[str], answer: Answer | None, reason: str) -> list[Rule]:
    return [
        Rule(id=f"built-in:{name}.{number}", match=match, answer=answer, reason=reason)
        for number, match in enumerate(dict.fromkeys(matches), 1)
    ]


def template(names: Sequence[str]) -> str:
    """The text of a policy for projects of these kinds. Raises BadPolicy for one that there is not."""
    parts = [(TEMPLATES / "base.yaml").read_text("utf-8")]
    for name in names:
        path = TEMPLATES / f"{name}.yaml"
        if name not in kinds():
            raise BadPolicy(f"there is no template {name[:40]}", f"there are: {', '.join(kinds())}")
        parts.append(path.read_text("utf-8"))
    sections: dict[str, list[str]] = {}
    for part in parts:
        section = ""
        for line in part.splitlines():
            if re.match(r"[a-z]+:", line):
                section = line
            sections.setdefault(section, []).append(line)
    return "\n".join(line for section, lines in sections.items() for number, line in enumerate(lines)
                     if line != section or number == 0) + "\n"  # fmt: skip


def kinds() -> list[str]:
    """The kinds of projects for which there is a template."""
    return sorted(path.stem for path in TEMPLATES.glob("*.yaml") if path.stem != "base")


def kinds_of(workspace: Path) -> list[str]:
    """The kinds of projects that the workspace looks like."""
    marks = {"python": ("pyproject.toml", "setup.py", "requirements.txt"), "node": ("package.json",),
             "rust": ("Cargo.toml",)}  # fmt: skip
    return [kind for kind, names in marks.items() if any((workspace / name).exists() for name in names)]
