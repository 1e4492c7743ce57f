"""What detectives look for: every goal there is, by its id; pure.

A goal is an **asset** (found is good), a **flaw** (found is bad; evidence of it exists only where it was found), or
**context** (says what was looked at, or describes). A goal's id never changes its meaning. ``words`` are what a
rubric's text says when it means this goal: lower case, matched at word boundaries; a rubric may also name goals
itself, in a dimension's ``goals``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

Kind = Literal["asset", "flaw", "context"]


class Goal(msgspec.Struct, frozen=True):
    """``title``: what was looked for, in words. ``security``: a confirmed flaw of this kind caps its criterion."""

    id: str
    kind: Kind
    title: str
    words: tuple[str, ...] = ()
    security: bool = False

    @property
    def text(self) -> str:
        """As ``Evidence.goal`` has it."""
        return f"{self.id}: {self.title}"


def goal_id(text: str) -> str:
    """The id at the beginning of an ``Evidence.goal``."""
    return text.partition(":")[0]


_GOALS: Final = (
    # What was looked at: there is one in every dimension, and it is always found.
    Goal("repo.scope", "context", "what of the repository was examined"),
    Goal("report.scope", "context", "what of the report was read"),
    Goal("images.scope", "context", "which images the report has"),
    Goal("repo.unparsed", "context", "Python files that do not parse"),
    Goal("repo.flaws", "context", "which flaws were looked for"),
    # The history of the audited branch.
    Goal("history.commits", "asset", "more than three commits",
         ("commits", "commit", "git log", "git history", "commit history")),
    Goal("history.spread", "asset", "commits spread over time, not clustered within minutes",
         ("timestamps", "bulk upload", "iterative", "atomic", "monolithic", "clustered within minutes",
          "single init commit")),
    Goal("history.messages", "asset", "messages that say what was done",
         ("commit messages", "meaningful messages", "messages")),
    Goal("history.progression", "asset", "code that grows step by step, by what the commits changed",
         ("progression", "story", "step-by-step", "step by step", "in steps", "incremental", "built up")),
    Goal("history.bulk", "flaw", "one commit, or one hour, brought most of the code",
         ("bulk upload", "single upload", "all code at once", "one commit hold", "cosmetic", "monolithic")),
    # State and models.
    Goal("state.typed", "asset", "a TypedDict, BaseModel or dataclass as the state of a graph",
         ("typeddict", "typed state", "agentstate", "state definitions", "state models", "state transitions",
          "state schema")),
    Goal("state.models", "asset", "Pydantic models with typed fields",
         ("pydantic", "basemodel", "typed models", "data models")),
    Goal("state.reducers", "asset", "reducers in Annotated fields",
         ("reducer", "reducers", "operator.add", "operator.ior")),
    Goal("state.plain_dicts", "flaw", "a graph whose state is a plain dict",
         ("plain python dicts", "plain dicts", "plain dictionaries", "untyped dicts", "untyped dictionaries")),
    Goal("state.undeclared", "flaw", "a key is read or written that the state does not declare",
         ("undeclared", "undeclared keys", "not declared", "declared")),
    Goal("state.parallel_writes", "flaw", "nodes that run side by side write one key without a reducer",
         ("parallel writes", "without a reducer", "overwrite each other", "overwriting each other")),
    # Graphs.
    Goal("graph.builder", "asset", "a StateGraph, or another graph of agents, is built",
         ("stategraph", "graph structure", "graph definition", "graph wiring", "agent graph", "state machine",
          "pipeline", "langgraph")),
    Goal("graph.fan_out", "asset", "a node with two or more unconditional successors, or a mapped fan-out",
         ("fan-out", "fan out", "fan-outs", "parallel branches", "in parallel", "run concurrently", "parallel split",
          "parallel", "side by side", "concurrently")),
    Goal("graph.fan_in", "asset", "a node with two or more predecessors that joins parallel branches",
         ("fan-in", "fan in", "joined", "a join", "joins", "synchronization node", "synchronisation node",
          "synchronization", "synchronisation", "aggregator", "aggregation")),
    Goal("graph.two_stages", "asset", "two separate fan-outs, each joined again",
         ("two distinct parallel", "judges in parallel", "two fan-outs", "two separate fan-outs", "each with a join",
          "then the judges")),
    Goal("graph.conditional", "asset", "conditional edges",
         ("conditional edges", "conditional edge", "conditional routing", "routing", "another way",
          "conditional branches")),
    Goal("graph.error_route", "asset", "a conditional edge for failure or missing evidence",
         ("error states", "node failure", "evidence missing", "failure paths", "error routing", "failed nodes",
          "missing evidence", "way for errors", "edges for failure", "for errors", "cover failure")),
    Goal("graph.linear", "flaw", "a graph without any parallel branch", ("linear", "purely linear", "a->b->c")),
    Goal("graph.run", "asset", "the program compiles the graph and runs it",
         ("invoked", "compiled", "invokes", "run by the program", "entry point")),
    Goal("graph.idle", "flaw", "a graph that the program never runs",
         ("nobody runs", "never run", "nobody compiles", "never compiled", "never invoked", "compiles or invokes")),
    Goal("graph.dead_nodes", "flaw", "nodes to which no path leads from START",
         ("unreachable", "dead nodes", "every node is reachable", "every node reachable", "reachable")),
    Goal("graph.no_end", "flaw", "nodes from which no path leads to an end",
         ("no way to end", "endless loops", "endless", "come to end", "reach end")),
    Goal("graph.broken_route", "flaw", "a route to what the graph does not have",
         ("routes that can never be taken", "broken route", "can they be taken")),
    Goal("graph.empty_nodes", "flaw", "nodes whose function does nothing, or always the same",
         ("empty bodies", "empty nodes", "empty", "stubs")),
    # Tools that reach the outside.
    Goal("tools.temporary_clone", "asset", "git clones go into a temporary directory",
         ("temporarydirectory", "tempfile", "temporary directory", "sandboxed", "sandboxing", "sandbox", "clone")),
    Goal("tools.checked_processes", "asset", "processes are started by argument list, their failure is looked at",
         ("subprocess.run", "subprocess", "return codes", "stderr", "exit codes")),
    Goal("tools.time_limits", "asset", "processes and requests have a time limit",
         ("timeout", "timeouts", "time-out", "time-outs", "time limit", "time limits")),
    Goal("tools.errors_handled", "asset", "failures of git or of processes are caught and told",
         ("authentication errors", "authentication failures", "auth failures", "proper error handling",
          "error handling around", "errors are handled", "handled gracefully", "failures caught")),
    Goal("tools.inputs_checked", "asset", "URLs and paths from outside are checked before they are used",
         ("sanitization", "sanitisation", "sanitized", "unsanitized", "input validation", "validated inputs")),
    Goal("tools.no_unsafe_calls", "asset",
         "none of the calls that start processes, evaluate code or load objects is unsafe",
         ("os.system", "shell injection", "security violation", "security violations", "unsafe calls")),
    Goal("security.os_system", "flaw", "os.system, os.popen or the like with text that is not constant",
         ("os.system", "security violation", "security violations"), security=True),
    Goal("security.shell", "flaw", "a shell is started with text that is not constant",
         ("shell injection", "shell commands", "shell=true", "security violation",
          "security violations"), security=True),
    Goal("security.evaluation", "flaw", "eval or exec of what is not constant",
         ("eval", "exec", "code injection", "security violation", "security violations"), security=True),
    Goal("security.unsafe_load", "flaw", "pickle, marshal, yaml.load or alike on data from outside",
         ("pickle", "unsafe load", "deserialization", "deserialisation", "security violation",
          "security violations"), security=True),
    Goal("security.clone_in_place", "flaw", "git clone into the working directory or a fixed place",
         ("live working directory", "working directory"), security=True),
    Goal("security.secret", "flaw", "a key or password in the code",
         ("secret", "secrets", "api key", "api keys", "hardcoded key", "hardcoded keys",
          "credentials"), security=True),
    Goal("security.in_tests", "context", "unsafe calls in tests and examples"),
    # From a SARIF file of another tool, where one was given.
    Goal("tools.reported", "flaw", "findings of another tool"),
    # What models answer.
    Goal("output.structured", "asset",
         "models are bound to a schema (with_structured_output, bind_tools, response_format)",
         ("with_structured_output", "structured output", "bind_tools", "structured json", "response_format")),
    Goal("output.validated", "asset", "answers are validated, and a misfit is noticed",
         ("validated", "pydantic validation", "schema validation", "validation on output")),
    Goal("output.retried", "asset", "an answer that does not fit is asked for again",
         ("retry", "retries", "malformed")),
    Goal("output.freeform", "flaw", "a model's free text is parsed or used as a verdict",
         ("freeform", "free-form", "free text", "plain prompts")),
    Goal("output.unused_schema", "flaw", "a model is bound to a schema, and that binding is never used",
         ("schema bound but never used", "schema for show", "schema that is never used", "bound but")),
    # Judges.
    Goal("judges.personas", "asset", "prompts of several personas", ("personas", "persona", "system prompts")),
    Goal("judges.distinct", "asset", "persona prompts share less than half of their text",
         ("distinct personas", "persona separation", "conflicting system prompts", "distinct, conflicting",
          "conflicting philosophies", "distinct prompts")),
    Goal("judges.stances", "asset", "prompts that tell one to attack, one to credit, one to be practical",
         ("adversarial", "forgiving", "pragmatic", "contrarian")),
    Goal("judges.collusion", "flaw", "persona prompts that share half of their text or more",
         ("persona collusion", "share 90%", "near-identical", "share more than")),
    Goal("judges.parallel", "asset", "the judges run side by side",
         ("independently", "side by side", "in parallel", "independent")),
    Goal("judges.in_sequence", "flaw", "one judge runs after another",
         ("one after another", "in sequence", "sequentially", "see each other")),
    # Synthesis.
    Goal("justice.deterministic", "asset", "scores are combined by code, without a model",
         ("deterministic", "hardcoded rules", "if/else", "conflict resolution")),
    Goal("justice.rules", "asset", "named rules: a cap for security, facts over opinions, a weight",
         ("security override", "rule of security", "security cap", "cap for security", "named rules",
          "specific rules")),
    Goal("justice.facts", "asset", "opinions count only as far as they rest on what was found",
         ("facts over opinions", "evidence over opinion", "fact supremacy", "rule of evidence")),
    Goal("justice.variance", "asset", "a wide spread of scores is treated apart",
         ("variance", "re-evaluation", "differ widely", "large spread")),
    Goal("justice.dissent", "asset", "disagreement is told in the result", ("dissent",)),
    Goal("justice.report_file", "asset", "the result is written to a file",
         ("markdown", "report file", "report written", "written to a file", "written to disk")),
    Goal("justice.model_decides", "flaw", "the final score is a model's answer",
         ("averages", "llm prompt that", "just another llm prompt", "not just an llm prompt")),
    Goal("justice.without_effect", "flaw", "a rule, a spread or a text is computed and changes nothing",
         ("change nothing", "changes nothing", "without effect", "computed and", "take effect")),
    # Where results go.
    Goal("outcome.delivered", "asset", "results reach a file, a database, a caller or a screen",
         ("reach a file", "reach the file", "written or returned", "delivered", "written out", "reaches")),
    Goal("outcome.unused", "flaw", "results that are computed and never used",
         ("ignored", "overwritten", "computed and ignored", "never used", "dropped results")),
    # Engineering at large.
    Goal("project.tests", "asset", "tests, and what they would run with", ("tests", "test suite", "unit tests")),
    Goal("project.untested", "flaw", "most modules of the code are imported by no test",
         ("tests", "main behaviour", "main behavior", "coverage")),
    Goal("project.errors_told", "asset", "failures are told: raised with a message, logged, or as an exit code",
         ("clear message", "exit code", "error messages", "told to the user", "told", "reported", "logged")),
    Goal("project.ci", "asset", "checks that run on every change", ("continuous integration", "ci")),
    Goal("project.lock", "asset", "dependencies pinned in a lock file",
         ("lock file", "lockfile", "locked", "pinned", "pinned dependencies")),
    Goal("project.types", "asset", "functions with annotations",
         ("type annotations", "function annotations", "annotated functions", "type-checked")),
    Goal("project.lint", "asset", "a linter or type checker is configured",
         ("linter", "linting", "lint", "type checker")),
    Goal("project.readme", "asset", "a README that says how to run it", ("readme", "documentation")),
    Goal("project.license", "asset", "a licence", ("license", "licence")),
    Goal("project.environment", "asset", "settings come from the environment, and an example names them",
         (".env.example", "environment variables")),
    Goal("project.swallowed", "flaw", "exceptions caught and dropped",
         ("swallowed", "bare except", "silently ignored", "silenced")),
    Goal("agent.limits", "asset", "models and graphs have limits: time, tokens, steps",
         ("recursion limit", "recursion_limit", "token budget", "budget", "step limit", "runaway", "limits of steps",
          "limits on loops", "loops without limit", "models are limited", "limited", "limits")),
    Goal("agent.approval", "asset", "a person is asked before something outward happens",
         ("approval", "human in the loop", "human-in-the-loop")),
    Goal("agent.persistence", "asset", "runs are persisted and can go on",
         ("checkpointer", "checkpoint", "persistence", "resume")),
    # Words that a rubric quotes: in the repository, and in the report. The term stands behind a second colon.
    Goal("repo.term", "asset", "a name or path that the rubric quotes"),
    Goal("report.term", "asset", "a term that the rubric quotes, explained in the report"),
    Goal("report.keyword", "flaw", "a term that is dropped without explanation",
         ("keyword dropping", "buzzword", "buzzwords")),
    Goal("report.statements", "context", "features that the report claims"),
    Goal("report.structure", "asset", "headings that structure the report",
         ("headings", "sections", "table of contents")),
    Goal("report.paths", "context", "file paths that the report names"),
    Goal("report.verified", "asset", "paths of the report that exist in the repository",
         ("file paths", "verified paths", "verified")),
    Goal("report.hallucinated", "flaw", "paths of the report that do not exist in the repository",
         ("hallucinated", "hallucinated paths", "files that do not exist")),
    Goal("report.contradicted", "flaw", "a feature that the report claims and the code does not show",
         ("contradicts", "contradicted", "contradicting", "not present in the code")),
    Goal("report.supported", "asset", "features that the report claims and the code shows",
         ("feature claims", "claims", "claimed features")),
    Goal("images.present", "asset", "diagrams or images in the report", ("diagram", "diagrams", "images")),
    Goal("images.inspected", "asset", "what a vision model sees in a diagram",
         ("parallel branches", "visual", "diagram", "diagrams")),
)  # fmt: skip

GOALS: Final[Mapping[str, Goal]] = {goal.id: goal for goal in _GOALS}
SECURITY: Final = frozenset(goal.id for goal in _GOALS if goal.security)
