"""How far audits agree with the scores that a reader gave, and how well they tell a report's false claims.

Usage: benchmarks/audit_agreement.py [--set practice|heldout|heldout2|heldout3|heldout4|heldout5|twins]...
       [--keep FOLDER] [--reports FOLDER] [--model NAME]

Each project of ``benchmarks/audit_agreement`` is built (``build.py``) and audited by the command line in a temporary
workspace; ``--keep`` keeps the JSON reports, and ``--reports`` reads kept ones instead of auditing again. Printed are,
for each criterion and over all:

- n: the criteria with a score of the reader's. One that the audit did not judge is neither equal nor within one, and is
  left out of bias and correlation. Criteria that do not apply ("n/a") are counted apart: whether the audit said so too.
- exact, within 1, bias (audit less reader) and Pearson's correlation; then the first two for a judge who always gives
  the criterion's mean, rounded.

Then the same within one on scores of 1, 2 and 5; how far twins lie apart; and of the claims: how many of the sentences
called contradicted are false ones, how many of the planted false claims were found (contradicted, or their path as
invented), and which invented paths were missed. Sentences that are no planted claim count as wrong, and are listed to
be looked at. Where a set has ``sentences.toml``, its single sentences are looked up in their project's code. Of several
sets one table comes last. As many projects are audited side by side as there are processors.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from pmagent.actors.audit.detectors.code.parse import is_python, parsed
from pmagent.actors.audit.detectors.code.survey import survey_code
from pmagent.actors.audit.detectors.evidence.checks import Facts
from pmagent.actors.audit.matters import EXPLAINED
from pmagent.actors.audit.sources.pdf.layout import Paragraph
from pmagent.actors.audit.sources.pdf.statements import statements
from pmagent.contracts.audit_facts import History, RepoSurvey

HOME = Path(__file__).with_suffix("")
SETS = ("practice", "heldout", "heldout2", "heldout3", "heldout4", "heldout5", "twins")
ALIKE = 0.8
"""The share of a claim's words that a quoted sentence has at least, to be taken for it."""


class Pair(NamedTuple):
    """A criterion's score by the reader and by the audit; None: not judged."""

    criterion: str
    reader: int
    audit: int | None


class Agreement(NamedTuple):
    """How far two rows of scores agree. ``bias`` and ``correlation`` are NaN where they mean nothing."""

    n: int
    exact: float
    within_one: float
    bias: float
    correlation: float


def share(part: int, whole: int) -> float:
    """A part of a whole; NaN of nothing."""
    return part / whole if whole else math.nan


def correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Pearson's; NaN where either side does not vary."""
    if len(left) < 2 or len(set(left)) == 1 or len(set(right)) == 1:
        return math.nan
    return statistics.correlation(left, right)


def agreement(pairs: Sequence[Pair]) -> Agreement:
    """The figures of some pairs."""
    judged = [(pair.reader, pair.audit) for pair in pairs if pair.audit is not None]
    apart = [audit - reader for reader, audit in judged]
    return Agreement(
        len(pairs),
        share(sum(one == 0 for one in apart), len(pairs)),
        share(sum(abs(one) <= 1 for one in apart), len(pairs)),
        statistics.mean(apart) if apart else math.nan,
        correlation([reader for reader, _ in judged], [audit for _, audit in judged]),
    )


def always_the_mean(pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs of a judge who gives each criterion its mean over the projects, rounded half up."""
    by_criterion: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_criterion[pair.criterion].append(pair)
    return [
        pair._replace(audit=math.floor(statistics.mean(other.reader for other in group) + 0.5))
        for group in by_criterion.values()
        for pair in group
    ]


def words(text: str) -> set[str]:
    """A text's words, without case, punctuation and the typesetter's ligatures."""
    return set(re.findall(r"[\w./-]*\w", unicodedata.normalize("NFKC", text).casefold()))


def same_sentence(claim: str, quoted: str) -> bool:
    """Whether a sentence that an audit quotes is this claim, or holds it, or is a part of it of some length."""
    mine, theirs = words(claim), words(quoted)
    shorter = min(len(mine), len(theirs))
    return shorter >= min(3, len(mine)) and len(mine & theirs) >= ALIKE * shorter


class Claims(NamedTuple):
    """The counts of one report's claims."""

    flagged: int
    rightly: int
    planted: int
    found: int
    invented: int
    missed: list[str]
    doubtful: list[str]
    """Quoted sentences that are no planted claim, or one that is not false."""


def found_evidence(report: dict[str, Any], goal: str) -> list[str]:
    """The texts of what was found for a goal, each once."""
    texts = {
        f"{one.get('content') or ''} {one['location']}" if goal == "report.hallucinated" else one.get("content") or ""
        for group in report["evidence"].values()
        for one in group
        if one["found"] and one["goal"].split(":")[0] == goal
    }
    return sorted(texts - {""})


def check_claims(planted: dict[str, Any], report: dict[str, Any]) -> Claims:
    """Hold what an audit said of a report's claims against what was planted in it."""
    claims = planted.get("claim", [])
    contradicted = found_evidence(report, "report.contradicted")
    hallucinated = " ".join(found_evidence(report, "report.hallucinated"))
    false = [claim["text"] for claim in claims if claim["kind"] == "false"]
    others = [claim["text"] for claim in claims if claim["kind"] != "false"]
    invented = planted.get("invented_paths", [])
    missed = [path for path in invented if path not in hallucinated]
    right, doubtful = 0, []
    for quoted in contradicted:
        if any(same_sentence(text, quoted) for text in false):
            right += 1
        else:
            kind = "not false" if any(same_sentence(text, quoted) for text in others) else "not planted"
            doubtful.append(f"{kind}: {' '.join(quoted.split())[:120]}")
    seen = set(invented) - set(missed)
    found = sum(
        any(same_sentence(text, quoted) for quoted in contradicted) or any(path in text for path in seen)
        for text in false
    )
    return Claims(len(contradicted), right, len(false), found, len(invented), missed, doubtful)


def scores_of(report: dict[str, Any] | None) -> dict[str, int]:
    """The audit's score of each criterion that it judged; none of an audit that failed."""
    return {} if report is None else {one["dimension_id"]: one["final_score"] for one in report["criteria"]}


def audited(project: Path, tree: Path, rubric: Path, kept: Path, model: str | None) -> dict[str, Any] | None:
    """Build and audit one project; None if the audit failed. Its JSON report is left in ``kept``."""
    program = Path(sys.executable).with_name("pmagent")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "work").mkdir()
        bare = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "PMAGENT_"))}
        environment = bare | {"HOME": folder}

        def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                arguments, cwd=root / "work", env=environment, capture_output=True, text=True, check=False
            )

        for command in ((sys.executable, HOME / "build.py", project, tree, root), ("git", "init"), (program, "init")):
            done = run(*command)
            if done.returncode:
                raise SystemExit(f"error: {project.name}: {done.stderr.strip() or done.stdout.strip()}")
        options = ["--model", model] if model else []
        done = run(
            program, "audit", root / "repo", root / "report.pdf", "--rubric", rubric, "--output", root / "out", *options
        )
        written = sorted((root / "out").glob("*.json"))
        if done.returncode or len(written) != 1:
            print(f"{project.name}: exit {done.returncode}: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return None
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(written[0].read_bytes())
    return kept_report(kept)


def kept_report(path: Path) -> dict[str, Any] | None:
    """A kept report; None where the audit failed."""
    if not path.exists():
        return None
    report: dict[str, Any] = json.loads(path.read_text("utf-8"))["report"]
    return report


def projects(name: str) -> Iterator[Path]:
    """The projects of a set, in order."""
    yield from sorted(path for path in (HOME / name).iterdir() if path.is_dir())


def percent(value: float) -> str:
    """A share as it is printed."""
    return "-" if math.isnan(value) else f"{value:.0%}"


def row(name: str, pairs: Sequence[Pair]) -> str:
    """One line of the table."""
    ours, mean = agreement(pairs), agreement(always_the_mean(pairs))
    figures = (f"{ours.bias:+.2f}", f"{ours.correlation:.2f}") if ours.n else ("-", "-")
    return (
        f"{name:22} {ours.n:3} {percent(ours.exact):>6} {percent(ours.within_one):>8} {figures[0]:>6} {figures[1]:>6}"
        f" {percent(mean.exact):>8} {percent(mean.within_one):>8}"
    )


def table(pairs: Sequence[Pair]) -> Iterator[str]:
    """Agreement for each criterion, over all, and on the ends of the scale."""
    yield f"{'criterion':22}   n  exact within 1   bias   corr  mean: =  mean: 1"
    for criterion in dict.fromkeys(pair.criterion for pair in pairs):
        yield row(criterion, [pair for pair in pairs if pair.criterion == criterion])
    yield row("all", pairs)
    ends = [pair for pair in pairs if pair.reader in (1, 2, 5)]
    yield f"within one on scores of 1, 2 and 5: {percent(agreement(ends).within_one)} of {len(ends)}"
    middles = [pair for pair in always_the_mean(pairs) if pair.reader in (1, 2, 5)]
    yield f"the same, always the mean: {percent(agreement(middles).within_one)}"


ReportOf = Callable[[Path, Path, Path], dict[str, Any] | None]
"""The report on a project, given its folder, its tree and its rubric; None where the audit failed."""
Measured = Generator[str, None, tuple[Sequence[Pair], Sequence[tuple[str, Claims]]]]
"""Lines to print, then the pairs and claims of a set."""


def measure(name: str, report_of: ReportOf) -> Measured:
    """Print the agreement of a set of whole projects."""
    pairs, claims, apart = [], [], []
    for project in projects(name):
        wanted = tomllib.loads((project / "scores.toml").read_text("utf-8"))
        report = report_of(project, project / "tree", HOME / name / wanted.pop("rubric"))
        got = scores_of(report)
        for criterion, given in wanted.items():
            if given["score"] == "n/a":
                apart.append(criterion not in got)
                continue
            pairs.append(Pair(criterion, given["score"], got.get(criterion)))
        line = " ".join(f"{given['score']}/{got.get(criterion, '-')}" for criterion, given in wanted.items())
        yield f"{project.name:16} {line}"
        planted = tomllib.loads((project / "claims.toml").read_text("utf-8"))
        claims.append((project.name, check_claims(planted, report or {"evidence": {}})))
    yield from ("", *table(pairs))
    yield f"does not apply: the audit says so too in {sum(apart)} of {len(apart)}"
    yield from ("", *claim_lines(claims))
    return pairs, claims


def summary(name: str, pairs: Sequence[Pair], claims: Sequence[tuple[str, Claims]]) -> str:
    """A set's line in the table of all."""
    ours, ends = agreement(pairs), agreement([pair for pair in pairs if pair.reader in (1, 2, 5)])
    flagged, rightly, planted, found = (
        sum(column) for column in zip(*(one[:4] for _, one in claims), strict=True)
    )  # fmt: skip
    return (
        f"{name:10} {ours.n:4} {percent(ours.exact):>6} {percent(ours.within_one):>8} {ours.bias:+6.2f} "
        f"{ours.correlation:6.2f} {percent(ends.within_one):>8} {f'{rightly} of {flagged}':>14} "
        f"{f'{found} of {planted}':>12}"
    )


def claim_lines(claims: Sequence[tuple[str, Claims]]) -> Iterator[str]:
    """The figures of the claims, and what is to be looked at."""
    counts = [one[:5] for _, one in claims]
    flagged, rightly, planted, found, invented = (sum(column) for column in zip(*counts, strict=True))
    yield f"called contradicted: {rightly} of {flagged} are planted false claims ({percent(share(rightly, flagged))})"
    yield f"planted false claims found: {found} of {planted} ({percent(share(found, planted))})"
    missed = [f"{name}: {path}" for name, one in claims for path in one.missed]
    yield f"invented paths missed: {len(missed)} of {invented}"
    yield from (f"  missed {line}" for line in missed)
    yield from (f"  {name}: {line}" for name, one in claims for line in one.doubtful)


def measure_twins(report_of: ReportOf) -> Iterator[str]:
    """Print how far twins lie apart."""
    good = total = 0
    for project in projects("twins"):
        twin = tomllib.loads((project / "twin.toml").read_text("utf-8"))
        got = [
            scores_of(report_of(project, project / kind, HOME / "twins" / twin["rubric"])).get(twin["criterion"])
            for kind in ("stub", "sound")
        ]
        stub, sound = got
        told = stub is not None and sound is not None and sound - stub >= 2
        good, total = good + told, total + 1
        yield (
            f"{project.name:16} {twin['criterion']:20} stub {stub or '-'} (reader {twin['stub']}), "
            f"sound {sound or '-'} (reader {twin['sound']}){'' if told else '  NOT TOLD APART'}"
        )
    yield f"told apart by two points or more: {good} of {total}"


def facts_of(tree: Path) -> Facts:
    """The known facts about a project's code, without its history."""
    texts = {path.relative_to(tree).as_posix(): path.read_bytes() for path in sorted(tree.rglob("*")) if path.is_file()}
    past = History(total=5, shown=[], span_s=10**6, burst=0.1)
    sources = [parsed(path, text) for path, text in texts.items() if is_python(path)]
    code = survey_code(sources, list(texts), texts.get, past)
    known = {name: getattr(code, name) for name in code.__struct_fields__}
    return Facts(RepoSurvey(commit="", branch="", history=past, files=list(texts), file_count=len(texts), **known))


def outcomes(facts: Facts, sentence: str) -> set[str]:
    """The outcomes of looking up what a sentence says; names between backticks stand in a font for code."""
    plain, codes = "", []
    for place, part in enumerate(sentence.split("`")):
        codes += [(len(plain), len(plain) + len(part))] if place % 2 else []
        plain += part
    said, _ = statements([Paragraph(plain, 1, 0, tuple(codes), "")])
    return {facts.checked(one).outcome for one in said if one.goal != EXPLAINED}


def measure_sentences(name: str) -> Iterator[str]:
    """Print how single sentences are told, where the set has some."""
    path = HOME / name / "sentences.toml"
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for project, kinds in tomllib.loads(path.read_text("utf-8")).items() if path.exists() else ():
        facts = facts_of(HOME / name / project / "tree")
        for kind, each in kinds.items():
            counts[kind][0] += len(each)
            counts[kind][1] += sum("contradicted" in outcomes(facts, sentence) for sentence in each)
    for kind, (total, denied) in counts.items():
        yield f"single sentences, {kind}: {denied} of {total} called contradicted"


def main(arguments: Sequence[str] | None = None) -> None:
    """Audit the sets and print the tables."""
    parser = argparse.ArgumentParser(description="How far audits agree with a reader's scores.")
    parser.add_argument("--set", action="append", choices=SETS, dest="sets", help="may be repeated (default: practice)")
    parser.add_argument("--keep", type=Path, help="folder in which the JSON reports are kept")
    parser.add_argument("--reports", type=Path, help="folder of kept reports, which are read instead of auditing")
    parser.add_argument("--model", help="the model that judges (default: rules)")
    options = parser.parse_args(arguments)
    names = options.sets or ["practice"]
    lines = [f"{'set':10}    n  exact within 1   bias   corr 1, 2, 5 contradicted   found false"]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = options.reports or options.keep or Path(scratch)

        def kept(project: Path, tree: Path) -> Path:
            name = project.name if tree.name == "tree" else f"{project.name}_{tree.name}"
            return (folder / project.parent.name / name).with_suffix(".json").resolve()

        def made(project: Path, tree: Path, rubric: Path) -> dict[str, Any] | None:
            if options.reports:
                return kept_report(kept(project, tree))
            return audited(project, tree, rubric, kept(project, tree), options.model)

        for name in names:
            begun = {one[:2]: pool.submit(made, *one) for one in audits(name)}

            def report_of(project: Path, tree: Path, _: Path, begun: Any = begun) -> dict[str, Any] | None:
                report: dict[str, Any] | None = begun[project, tree].result()
                return report

            print(f"== {name}")
            if name == "twins":
                print(*measure_twins(report_of), sep="\n")
            else:
                lines.append(summary(name, *printed(measure(name, report_of))))
            print(*measure_sentences(name), "", sep="\n", flush=True)
    if len(lines) > 2:
        print(*lines, sep="\n")


def audits(name: str) -> Iterator[tuple[Path, Path, Path]]:
    """Every audit that a set needs: project, tree and rubric."""
    for project in projects(name):
        if name == "twins":
            rubric = tomllib.loads((project / "twin.toml").read_text("utf-8"))["rubric"]
            yield from ((project, project / kind, HOME / name / rubric) for kind in ("stub", "sound"))
        else:
            rubric = tomllib.loads((project / "scores.toml").read_text("utf-8"))["rubric"]
            yield project, project / "tree", HOME / name / rubric


def printed(lines: Measured) -> tuple[Sequence[Pair], Sequence[tuple[str, Claims]]]:
    """Print the lines, and hand on what comes after them."""
    while True:
        try:
            print(next(lines), flush=True)
        except StopIteration as end:
            result: tuple[Sequence[Pair], Sequence[tuple[str, Claims]]] = end.value
            return result


if __name__ == "__main__":
    main()
