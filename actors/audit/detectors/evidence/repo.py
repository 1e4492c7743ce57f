"""Evidence about the repository, from its survey; pure.

For every goal of a dimension there is one item, found or not: so a judge sees as well what was looked for in vain, and
how. A flaw has an item only where it was found: nothing in the text of an item then says that a flaw is absent, for
somebody to mistake it for one that is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pmagent.actors.audit.detectors.evidence.care import care
from pmagent.actors.audit.detectors.evidence.graphs import graph_content, graph_line
from pmagent.actors.audit.detectors.evidence.history import history_content, span
from pmagent.actors.audit.detectors.evidence.text import NOWHERE, counted, evidence, joined
from pmagent.actors.audit.goals import GOALS, goal_id
from pmagent.actors.audit.occasions import no_occasion
from pmagent.actors.audit.rubric import Dimension
from pmagent.contracts.audit import Evidence
from pmagent.contracts.audit_events import EVIDENCE_MAX
from pmagent.contracts.audit_facts import CodeGraph, Finding, RepoSurvey, Term

ABSENCE: Final = 0.95
"""How sure it is that something is not there when everything was read: code has ways that its text does not show."""
UNREACHED: Final = 0.9
"""How sure it is that what is only there, and not reached, is not met."""
UNRESOLVED: Final = 0.6
"""The same of a graph of which not everything can be read without running it."""
HABIT: Final = 0.7
"""The same of what is known by names and habits of writing: it may be there in another way."""
_OF_AGENTS: Final = ("state", "graph", "output")
_BY_HABIT: Final = ("agent", "judges", "justice")
_GOALS_BY_HABIT: Final = (
    "graph.error_route", "output.validated", "output.retried", "tools.errors_handled", "tools.inputs_checked",
)  # fmt: skip
_OTHERS: Final = ("report", "images")
_OF_FILES: Final = ("project.ci", "project.lock", "project.lint", "project.readme", "project.license")
"""Goals that are seen by which files there are, and what they say; no code has to parse for that."""
_PART: Final = re.compile(r"\((\d+)%\)$")
"""How far a project is annotated, as the finding ends."""
_OF_BOTH: Final = ("project.tests", "project.environment")


def repo_evidence(dimension: Dimension, survey: RepoSurvey) -> list[Evidence]:
    """The evidence of a dimension about the repository: what was examined, then its goals, then which flaws were looked
    for, then what it quotes; at most ``EVIDENCE_MAX`` items."""
    found = [_scope(survey)]
    if survey.unparsed:
        found.append(_unparsed(survey))
    if survey.unparsed and not survey.examined.get("parsed") and {*map(_family, dimension.goals)} - {"history"}:
        rationale = f"parsed as Python: {_examined_code(survey)}"
        found.append(evidence("repo.unreadable", None, survey.unparsed[0].path, rationale, 1.0, found=True))
    of_code = [goal for goal in dimension.goals if _family(goal) not in _OTHERS]
    assets = [goal for goal in of_code if GOALS[goal].kind == "asset" and goal != "repo.term"]
    without = [goal for goal in assets if no_occasion(goal, survey.examined)] if dimension.where_applicable else []
    flawed = any(one.reached and one.goal in of_code and GOALS[one.goal].kind == "flaw" for one in survey.findings)
    apart = not flawed and len(without) > 1 and 3 * len(without) >= 2 * len(assets)
    for goal in of_code:
        items = goal_items(goal, survey, where_applicable=dimension.where_applicable)
        found += [_no_matter(one) for one in items] if apart and goal not in without else items
    found += _flaws(dimension, survey)
    found += _around(of_code, survey)
    looked = any(one.confidence and GOALS[goal_id(one.goal)].kind != "context" for one in found)
    of_history = all(_family(goal) == "history" for goal in of_code)
    if not of_history and (looked or not assets or _has_other_shape(assets, survey)):
        found += care(survey)
    if "repo.term" in dimension.goals:
        found += _terms(dimension, survey)
    return found[:EVIDENCE_MAX]


def _has_other_shape(assets: Sequence[str], survey: RepoSurvey) -> bool:
    """Whether a program has what a criterion is about in a shape that no detector knows: it is a program of agents, and
    what was looked for belongs to all of these."""
    agents = survey.examined.get("graphs") or survey.examined.get("model_calls")
    return bool(agents) and {_family(goal) for goal in assets} <= {*_OF_AGENTS}


def _no_matter(one: Evidence) -> Evidence:
    """A missing item where most of a criterion has no occasion: it does not apply, and counts neither way."""
    if one.found or not one.confidence:
        return one
    rationale = f"{one.rationale}; the criterion does not apply here"
    return one.model_copy(update={"confidence": 0.0, "rationale": rationale})


def goal_items(goal: str, survey: RepoSurvey, *, where_applicable: bool = False) -> list[Evidence]:
    """The item of a goal; none of a flaw that was not found, and none of what has items of its own. With
    ``where_applicable``, what the code has no occasion for is said to be so, and counts neither way."""
    every = [one for one in survey.findings if one.goal == goal]
    kept = [one for one in every if one.reached]
    if kept:
        return [_found(goal, kept, survey)]
    if every and GOALS[goal].kind == "asset":
        return [_unreached(goal, every, survey)]
    if GOALS[goal].kind != "asset" or goal == "repo.term":
        return []
    lacking = no_occasion(goal, survey.examined) if where_applicable else ""
    if lacking:
        whole = absence(survey) == ABSENCE
        so = "there is no occasion for it" if whole else "whether there is an occasion in the rest is not known"
        rationale = f"{lacking} in {_examined_code(survey)}: {so}"
        return [evidence(goal, None, NOWHERE, rationale, 0.0, found=False)]
    return [_absent(goal, survey)]


# --- what was examined ---------------------------------------------------------------------------------------------


def _scope(survey: RepoSurvey) -> Evidence:
    seen = survey.examined
    told = [
        f"commit {survey.commit}" + (f" of branch {survey.branch}" if survey.branch else ""),
        _files(survey),
        f"{counted(survey.history.total, 'commit')} over {span(survey.history.span_s)}",
        f"{counted(len(survey.graphs), 'graph')} built in the code",
    ]
    further = [f"{name.replace('_', ' ')}: {number:,}" for name, number in seen.items() if name not in _COUNTED]
    notes = [f"not looked at: {note}" for note in survey.notes]
    content = joined(["; ".join(told), *(["; ".join(further)] if further else []), *notes])
    past = "what there is of its history" if survey.history.cut else "its whole history"
    rationale = f"the commit was cloned with {past}, and its tracked files were read"
    return evidence("repo.scope", content, survey.commit or NOWHERE, rationale, 1.0, found=True)


_COUNTED: Final = ("files", "python_files", "notebooks", "lines", "parsed", "unparsed", "commits")


def _files(survey: RepoSurvey) -> str:
    seen = survey.examined
    parts = [counted(survey.file_count, "tracked file"), counted(seen.get("python_files", 0), "Python file")]
    if seen.get("notebooks"):
        parts.append(counted(seen["notebooks"], "notebook"))
    if "lines" in seen:
        parts.append(counted(seen["lines"], "line"))
    return ", ".join(parts)


def _unparsed(survey: RepoSurvey) -> Evidence:
    told = [f"{one.path}:{one.line}: {one.reason}" for one in survey.unparsed]
    first = survey.unparsed[0]
    content, where = joined(told, _unparsed_count(survey)), f"{first.path}:{first.line}"
    rationale = f"parsed as Python: {_examined_code(survey)}"
    return evidence("repo.unparsed", content, where, rationale, 1.0, found=True)


def _flaws(dimension: Dimension, survey: RepoSurvey) -> Iterator[Evidence]:
    """Which flaws were looked for, by their ids: so that there is something to rest on for who argues that there are
    none."""
    wanted = [goal for goal in dimension.goals if GOALS[goal].kind == "flaw" and _family(goal) not in _OTHERS]
    if not wanted:
        return
    seen = {one.goal for one in survey.findings if one.reached}
    told = [f"{goal}: {'found' if goal in seen else 'looked for'}" for goal in wanted]
    rationale = f"looked for in the syntax trees of {_examined_code(survey)}"
    yield evidence("repo.flaws", joined(told), survey.commit or NOWHERE, rationale, absence(survey), found=True)


def _around(goals: Sequence[str], survey: RepoSurvey) -> Iterator[Evidence]:
    """Which of the files that the goals were found in tests import, and how these files are built."""
    files = dict.fromkeys(one.path for goal in goals for one in survey.findings if one.goal == goal)
    built, tested = (
        [one for path in files for one in survey.findings if (one.goal, one.path) == (goal, path)]
        for goal in ("repo.structure", "repo.tested")
    )
    shares = [int(part[1]) for one in built if (part := _PART.search(one.text))]
    for told, met, whole in ((tested, len(tested), len(built)), (built, sum(shares), 100 * len(shares))):
        if told:
            rationale = f"seen in {_examined_code(survey)}: {counted(len(told), 'file')} with what was found"
            content, about = joined([_shown(one) for one in told]), f"{met} of {whole}"
            yield evidence(told[0].goal, content, _place(told[0]), rationale, 0.8, found=True, about=about)


# --- goals ---------------------------------------------------------------------------------------------------------


def _found(goal: str, kept: list[Finding], survey: RepoSurvey) -> Evidence:
    total = max(survey.counts.get(goal, 0), len(kept))
    places = "" if _family(goal) == "history" else f": {counted(total, 'place')}"
    rationale = f"{_how(goal, survey)}{places}"
    confidence = max(one.confidence for one in kept)
    where = survey.commit if _family(goal) == "history" else _place(kept[0])
    part = _PART.search(kept[0].text) if goal == "project.types" else None
    about = f"{part[1]} of 100" if part else ""
    return evidence(goal, _content(goal, kept, total, survey), where, rationale, confidence, found=True, about=about)


def _unreached(goal: str, every: list[Finding], survey: RepoSurvey) -> Evidence:
    """The item of a thing that is there, but that the program never comes to, or whose result it does not use."""
    rationale = f"{_how(goal, survey)}: {counted(len(every), 'place')}, none of which the program reaches and uses"
    return evidence(goal, joined([_shown(one) for one in every]), _place(every[0]), rationale, UNREACHED, found=False)


def _content(goal: str, kept: list[Finding], total: int, survey: RepoSurvey) -> str:
    if _family(goal) == "history" and survey.history.total:
        return history_content(survey)
    if goal == "graph.builder" and survey.graphs:
        return joined([graph_content(one) for one in survey.graphs])
    return joined([_shown(one) for one in kept], total)


def _shown(finding: Finding) -> str:
    """A place and what stands there; further lines of it are set in, to be told from the next place."""
    text = finding.text.replace("\n", "\n    ")
    return f"{_place(finding)}: {text}" if text else _place(finding)


def _place(finding: Finding) -> str:
    """``path:line``; the path alone where the finding is about the whole of it."""
    path = finding.path or NOWHERE
    return f"{path}:{finding.line}" if finding.line else path


def _absent(goal: str, survey: RepoSurvey) -> Evidence:
    content = None
    if _family(goal) == "history" and survey.history.total:
        content = history_content(survey)
    elif _family(goal) == "graph" and survey.graphs:
        content = joined([graph_line(one) for one in survey.graphs])
    rationale = _how(goal, survey) if _family(goal) == "history" else f"{_how(goal, survey)}: not found"
    where = survey.commit if _family(goal) == "history" else NOWHERE
    return evidence(goal, content, where or NOWHERE, rationale, absence_of(goal, survey), found=False)


def _how(goal: str, survey: RepoSurvey) -> str:
    """How a goal was looked for, and how much was looked at."""
    family = _family(goal)
    if family == "history":
        cut = "; it is cut short, and what came before is not known" if survey.history.cut else ""
        return f"computed from the history of the audited branch, {counted(survey.history.total, 'commit')}{cut}"
    if goal in (*_OF_FILES, *_OF_BOTH):
        return f"looked for among {counted(survey.file_count, 'tracked file')} and in what they hold"
    if family == "graph":
        told = counted(len(survey.graphs), "graph")
        unread = sum(bool(one.unresolved) for one in survey.graphs)
        limits = f", {unread} of which cannot be read in full without running them" if unread else ""
        return f"looked for in the syntax trees of {_examined_code(survey)}; {told} built there{limits}"
    return f"looked for in the syntax trees of {_examined_code(survey)}"


def _examined_code(survey: RepoSurvey) -> str:
    seen = survey.examined
    parts = [counted(seen.get("python_files", 0), "Python file")]
    if seen.get("notebooks"):
        parts.append(counted(seen["notebooks"], "notebook"))
    gaps = [f"{_unparsed_count(survey):,} do not parse"] if survey.unparsed else []
    gaps += [f"{seen['unread']:,} more were not read"] if seen.get("unread") else []
    return " and ".join(parts) + (f" ({', '.join(gaps)})" if gaps else "")


def absence_of(goal: str, survey: RepoSurvey) -> float:
    """How sure it is that something is not there: less where files do not parse, a graph cannot be read, or names are
    all that there is to go by; not at all where nothing could be read, or where a shallow repository keeps back the
    commits that would show it."""
    return min(_looked_for(goal, survey), GOALS[goal].sure)


def _looked_for(goal: str, survey: RepoSurvey) -> float:
    family = _family(goal)
    if family == "history":
        return 0.0 if survey.history.cut else 1.0
    if goal in _OF_FILES:
        return 1.0 if survey.file_count == len(survey.files) else ABSENCE
    sure = absence(survey)
    if family in _BY_HABIT or goal in _GOALS_BY_HABIT:
        sure *= HABIT / ABSENCE
    return min(sure, UNRESOLVED) if family == "graph" and not all(map(_is_whole, survey.graphs)) else sure


def _is_whole(graph: CodeGraph) -> bool:
    """Whether a graph was read in full: no edge leads to a node that was not seen."""
    ends = {name for edge in graph.edges for name in (edge.source, edge.target)}
    return not graph.unresolved and ends <= {"__start__", "__end__", *(node.name for node in graph.nodes)}


def absence(survey: RepoSurvey) -> float:
    """How sure it is that something is not in the code: as far as it was read and parses."""
    parsed, unknown = survey.examined.get("parsed", 0), _unparsed_count(survey) + survey.examined.get("unread", 0)
    return ABSENCE * parsed / (parsed + unknown) if unknown else ABSENCE


def _unparsed_count(survey: RepoSurvey) -> int:
    return max(survey.examined.get("unparsed", 0), len(survey.unparsed))


def _family(goal: str) -> str:
    return goal.partition(".")[0]


# --- what a rubric quotes ------------------------------------------------------------------------------------------


def _terms(dimension: Dimension, survey: RepoSurvey) -> Iterator[Evidence]:
    known = {one.term: one for one in survey.terms}
    for term in dimension.terms:
        where = known.get(term)
        if where is not None and where.count:
            yield _term_found(where, survey)
        else:
            yield _path_or_nothing(term, survey, looked_for=where is not None)


def _term_found(term: Term, survey: RepoSurvey) -> Evidence:
    content = joined([_shown(one) for one in term.places], term.count) if term.places else None
    location = _place(term.places[0]) if term.places else NOWHERE
    rationale = f"{_how_term(survey)}: {counted(term.count, 'place')}"
    confidence = max((one.confidence for one in term.places), default=1.0)
    return evidence("repo.term", content, location, rationale, confidence, found=True, about=term.term)


def _path_or_nothing(term: str, survey: RepoSurvey, *, looked_for: bool) -> Evidence:
    """A term that is no name in the code may be the path of a file, or the end of one."""
    paths = [path for path in survey.files if at_boundary(path, term)]
    if paths:
        rationale = f"compared with the paths of {counted(survey.file_count, 'tracked file')}: {len(paths):,} match"
        return evidence("repo.term", joined(paths), paths[0], rationale, 1.0, found=True, about=term)
    if not looked_for:
        rationale = "not looked for in the code; no tracked file has this path"
        return evidence("repo.term", None, NOWHERE, rationale, 0.0, found=False, about=term)
    sure = absence(survey)
    rationale = f"{_how_term(survey)}: not found"
    return evidence("repo.term", None, NOWHERE, rationale, sure, found=False, about=term)


def at_boundary(path: str, term: str) -> bool:
    """Whether the term is the path, its end, or a folder at its beginning or inside it, always at a ``/``."""
    wanted = term.strip("/")
    if "." not in wanted and "/" not in term:
        return False  # a word is no path
    return f"/{wanted}/" in f"/{path}/" if term.endswith("/") else f"/{path}".endswith(f"/{wanted}")


def _how_term(survey: RepoSurvey) -> str:
    return (
        f"looked for among the names, imports and texts of {_examined_code(survey)}, and among the paths of "
        f"{counted(survey.file_count, 'tracked file')}"
    )
