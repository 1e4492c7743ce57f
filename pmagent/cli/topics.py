"""The help topics. Tables come from the code, so that help cannot be out of date."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from pmagent.exitcodes import MEANINGS, kind


class Topic(NamedTuple):
    """A topic: its line in the list, and what makes its text."""

    title: str
    text: Callable[[], str]


def _exit_codes() -> str:
    rows = [f"  {int(code):>3}  {meaning}" for code, meaning in MEANINGS.items()]
    kinds = sorted({kind(code) for code in MEANINGS if code not in (0, 141)})
    return "\n".join(
        ["Exit codes", "", *rows, "",
         "With --format json an error is one document on stdout (without it, nothing is):",
         '  {"error": {"kind": …, "message": …, "hint": …}}', f"kind is one of: {', '.join(kinds)}.", "",
         "A daemon that says nothing for 1.5 s does not answer; one that computes is given 30 s, but not to look or to",
         "stop something. A command that only looks, as status, is answered by the log then (exit 0; in JSON daemon is",
         "unresponsive, or starting). For anything else the error has outcome and request:",
         "  none     exit 5: the daemon had not taken the request, and drops it",
         "  unknown  exit 6: it had taken it; or the request stops something (pause, cancel, pla disarm, pla end, a",
         "           lower pla mode), and is carried out whenever the daemon goes on",
         "The same command with --request ID is the same request: it is done once, and answered as the first time."]
    )


def _environment() -> str:
    from pmagent.cli.frame import FORMAT
    from pmagent.workspace.settings import FILE, WORKSPACE, settings_table

    rows = [
        f"  {WORKSPACE:<38} the workspace, without --workspace",
        f"  {FORMAT:<38} text or json, without --format",
    ]
    rows += [
        f"  {setting.variable:<38} {setting.text} [{_shown(setting.default)}]"
        for setting in settings_table() if setting.variable
    ]
    rows += [
        "  XDG_STATE_HOME                         the folder of your registry of what is trusted [~/.local/state]",
        "  NO_COLOR                               set: no colour",
        "  CLICOLOR_FORCE                         set: colour, also into a pipe",
        "  COLUMNS                                how wide a line may be",
        "  PAGER                                  shows long text on a terminal, cat: none; also --no-pager [less]",
    ]
    return "\n".join(
        ["Environment", "", *rows, "", f"A flag wins over a variable, a variable over {FILE}, that over the default.",
         "In the file, PMAGENT_KERNEL_PHASE is phase under [kernel]. doctor --settings shows each value's origin.",
         "log_dir under [storage], the folder of the log and its blobs, is set in the file only."]
    )


def _shown(default: object) -> str:
    """A default, as it would be written in the environment."""
    return "none" if default in (None, "") else str(default).lower() if isinstance(default, bool) else str(default)


def _formatting() -> str:
    return """\
Formatting

  --format text   for people: aligned, in colour on a terminal, cut to its width.
  --format json   for programs: one JSON document on stdout, and nothing else; log tail: one stored event a line.
                  The same: --json, -o json, and PMAGENT_FORMAT=json where no option says otherwise.

Logs, progress, warnings and errors go to stderr. Text from agents and files is hostile: for people, control
characters are shown as their pictures (␛, ␍) and what would reorder or hide text as �. JSON is byte-faithful.

Marks: ✓ came about, ✗ failed or refused, ▸ a decision, • a fact. Colour adds nothing that the words do not say.
log tail has one event a line: position, time, actor, type, correlation, summary."""


def _times() -> str:
    return """\
Times

  10m  1h30m  2d          so long ago
  14:30  14:30:05         the last time it was that
  now  today  yesterday   midnight, for the latter two
  2026-11-21T14:30        ISO 8601, also with a zone: 2026-11-21T15:30+01:00
  pos:1200                the event at position 1200

A terminal shows this machine's zone, and means it; --utc shows and means UTC. Pipes, JSON and the log are UTC.
Times are shown with their year where it is not this one. Times in the log never decrease.
Durations (--timeout): 250ms, 30s, 10m, 1h30m; a bare number is seconds."""


def _vocabulary() -> str:
    return """\
Vocabulary

  event        a line of the log          fact         an event that came from outside
  decision     an event computed by an actor, from the events before it
  effect       an outward act that a decision asks for; its outcome comes back as a fact
  performer    what carries an effect out permit       leave for one outward effect, granted by the OA
  projection   a document computed from the log; it can be deleted and rebuilt
  replay       deciding again, from the recorded facts; a divergence is the first difference
  position     an event's number: 1, 2, 3 …            batch   events that became durable together
  tail         the log's end              head         the file HEAD that notes what is durable
  segment      a file of the log          blob         content too large for a line
  workspace    the directory worked on    surface      a kernel file in it
  mode         NORMAL, DEGRADED or BLOCKED: what the kernel allows
  program      one of the four that reasoning has      envelope     what a program is given: goal, kernel, context
  engine       who answers: rules, langchain, dspy     result       what a program answers; one for each envelope
  run          a plan's tasks, or an envelope, on the way to an end
  audit        a repository and its report, judged; a job is a run or an audit
  rubric       what an audit judges          criterion    one dimension of it
  evidence     what a detective found, or looked for in vain; its key is CRITERION#N
  opinion      a judge's score of a criterion, and the evidence that it rests on
  ruling       the score that follows from the opinions, by fixed rules
  plan         tasks, and which waits for which        task         a program and its arguments, in a sandbox
  attempt      a task, carried out once                artifact     a file that a task left, its output too
  tool         a program that a task may start; of reasoning: what a run may look at the kernel with
  question     what a model is asked in a run; a call of the model is an attempt to answer it
  verdict      PROCEED, WARN or ABORT; the commands say ALLOW, CONDITIONAL or DENY
  proposal     one action that might be typed, with its digest; open until it is decided on, or expires
  approval     one operator's leave to type one proposal, for just the bytes that were shown, once
  execution    what an approval leads to in EXECUTE: prepared, committed, ended, or of unknown outcome
  arm          let the device type; its lease of 2 s is renewed, else it disarms itself
  kill         what the device's switch does: everything ends, until its power was cut"""


def _plans() -> str:
    return """\
Plans

  - task_id: files                 # yours: letters, digits and . _ -
    intent: List what is here
    tools: [ls]                    # tools[0] is started; all must be in whitelist_tools
    inputs: {args: ["-R", share]}  # as they are: no shell, no wildcards
  - task_id: page
    intent: Put a heading above it
    tools: [cat]
    depends_on: [files]            # only this makes the order
    inputs:
      args: [heading.md, /inputs/files/stdout]
      files: [{path: heading.md, content: "What is here"}]
    constraints: {max_duration_sec: 30, max_retries: 0, sandbox: {fs: read-only, net: deny}}

YAML or JSON. A task starts in the workspace, which it can read and not change (in the folder of its own files, if it
has some); leaves files in $ARTIFACTS; and finds what a task that it depends on has left in /inputs/<task_id>/, its
output in /inputs/<task_id>/stdout. pmagent run INTENT --plan FILE --plan-only shows the order and starts nothing.

orchestra.config.yaml in the workspace says which tools may be started, and how long, how often and where; without it
the specification's values hold. The manual: docs/orchestra.md."""


TOPICS: Final[dict[str, Topic]] = {
    "exit-codes": Topic("what the exit codes mean", _exit_codes),
    "environment": Topic("variables and settings", _environment),
    "formatting": Topic("text, JSON, colour, hostile text", _formatting),
    "plans": Topic("how a plan of tasks is written", _plans),
    "times": Topic("how times and durations are written", _times),
    "vocabulary": Topic("the words, one for each thing", _vocabulary),
}
