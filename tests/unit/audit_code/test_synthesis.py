"""How scores are combined: by code under named rules, or by a model that is asked for the last word."""

from __future__ import annotations

from pmagent.contracts.audit_facts import Finding
from tests.support.cases import each
from tests.support.detected import Table, detected, goals, of

BY_CODE = """
    from statistics import median
    from pathlib import Path

    SECURITY_CAP = 3
    TECH_LEAD_WEIGHT = 2

    def security_override(score, flaws):
        return min(score, SECURITY_CAP) if flaws else score

    def fact_supremacy(opinions, evidence):
        return [opinion for opinion in opinions if opinion.cited in evidence]

    def chief_justice_node(state):
        results = []
        for criterion, opinions in state["opinions"].items():
            scores = [opinion.score for opinion in opinions]
            final_score = median(scores)
            dissent = None
            if max(scores) - min(scores) > 2:
                dissent = f"{criterion}: the judges differ"
            results.append(Result(score=final_score, dissent_summary=dissent))
        Path("audit").joinpath("report.md").write_text(render(results))
        return {"final": results}
"""
BY_MODEL = """
    from langchain_openai import ChatOpenAI
    llm = ChatOpenAI().with_structured_output(Verdict)
    def chief_justice_node(state):
        verdict = llm.invoke("average these: " + str(state["opinions"]))
        return {"final_score": verdict.score}
"""


def found(text: str, **named: str) -> list[Finding]:
    return detected(Table("justice."), text, **named)


def test_synthesis_by_code_is_found_with_its_rules() -> None:
    findings = found(BY_CODE)
    assert goals(findings) == {
        "justice.deterministic", "justice.rules", "justice.facts", "justice.variance", "justice.dissent",
        "justice.report_file",
    }  # fmt: skip
    (deterministic,) = of(findings, "justice.deterministic")
    assert deterministic.line == 13
    assert "chief_justice_node() combines scores by" in deterministic.text
    assert {finding.line for finding in of(findings, "justice.rules")} == {8}
    assert {finding.line for finding in of(findings, "justice.facts")} == {11}


def test_a_model_with_the_last_word_is_a_flaw() -> None:
    findings = found(BY_MODEL)
    (flaw,) = of(findings, "justice.model_decides")
    assert flaw.line == 5
    assert flaw.confidence >= 0.8
    assert "justice.deterministic" not in goals(findings)


@each(
    "text",
    [
        "def prosecutor_node(s):\n    o = llm.invoke('x')\n    return {'opinions': [o.score]}",  # not the last word
        "def chief_justice(s):\n    t = llm.invoke('write it up').content\n    return {'summary': t}",
        "def chief_justice(s):\n    return {'final_score': min(o.score for o in s['opinions'])}",
        "PROMPT = 'ChiefJustice: average the scores of the three judges, verdict.score'",
    ],
)
def test_a_model_that_judges_or_writes_does_not_decide(text: str) -> None:
    head = "from langchain_openai import ChatOpenAI\nllm = ChatOpenAI()\n"
    assert "justice.model_decides" not in goals(found(head + text))


@each("text", [
    "def chief_justice(s):\n    score = float(llm.invoke('x').content)\n    return score",
    "def synthesize(s):\n    r = llm.invoke('x')\n    return Report(overall=r['score'])",
    "class ChiefJustice:\n    def run(self, s):\n        r = self.llm.invoke(s)\n        return r.overall_score",
    "async def final_verdict(s, llm):\n    answer = await llm.ainvoke(s)\n    return answer.rating",
])
def test_a_score_from_an_answer_is_found_however_it_is_taken(text: str) -> None:
    head = "from langchain_openai import ChatOpenAI\nllm = ChatOpenAI()\n"
    assert of(found(head + text), "justice.model_decides")


@each("text, counted", [
    ("def f(scores):\n    if max(scores) - min(scores) > 2: raise E", True),
    ("def f(scores):\n    spread = max(scores) - min(scores)\n    return spread >= LIMIT", True),
    ("import statistics as st\ndef f(scores):\n    return st.pvariance(scores) > 2", True),
    ("def f(case, opinions):\n    return case.variance > case.limit", True),
    ("def f(scores):\n    s = sorted(scores)\n    if s[-1] - s[0] > 2:\n        again()", True),
    ("def wide(s):\n    return max(o.score for o in s) - min(o.score for o in s) > 2", True),
    ("def f(parameter):\n    return parameter.variance > 2", False),
    ("def f(score):\n    return score.variance == COVARIANT", False),
    ("def f(heights):\n    return len(heights) > 2", False),
    ("def f(a, b):\n    return a - b > 2", False),
])
def test_variance_is_a_comparison_of_how_far_scores_lie_apart(text: str, counted: bool) -> None:
    assert ("justice.variance" in goals(found(text))) is counted


@each("text, counted", [
    ("from pathlib import Path\ndef f(t): Path('out/report.md').write_text(t)", True),
    ("def f(t, slug):\n    with open(f'audit/report_{slug}.md', 'w') as out: out.write(t)", True),
    ("def f(folder, t):\n    target = folder / 'REPORT.md'\n    target.write_text(t)", True),
    ("NAME = 'report.md'\ndef f(folder, t):\n    (folder / NAME).open('w').write(t)", True),
    ("def f(t): print(t)", False),
    ("def f(): return open('report.md').read()", False),
    ("def f(t): open('data.bin', 'wb').write(t)", False),
])
def test_a_report_is_a_file_that_is_written(text: str, counted: bool) -> None:
    assert ("justice.report_file" in goals(found(text))) is counted


@each("text", [
    "def average(values): return sum(values) / len(values)", "def clamp(value): return max(1, min(5, value))",
    "def show_scores(scores): print(scores)", "def unsupported_headers(names): return names",
    "def modify_security_group_rules(names): return names", "dissent = None",
    "class Result:\n    dissent_summary: str | None = None",
])
def test_code_that_settles_nothing_says_nothing(text: str) -> None:
    assert found(text) == []


def test_tests_settle_nothing() -> None:
    assert detected(Table("justice."), tests__test_it=BY_CODE, examples__show=BY_MODEL) == []


def test_rules_are_told_by_what_they_do_to_a_score() -> None:
    text = """
        class ChiefJustice:
            def __call__(self, opinions, evidence, criterion):
                scores = {one.judge: one.score for one in opinions}
                final_score = round(sum(scores.values()) / len(scores))
                highest = max(scores.values())
                lowest = min(scores.values())
                if "security" in opinions[0].argument:
                    final_score = min(3, int(final_score))
                if "architecture" in criterion:
                    final_score = round((scores["P"] + 2 * scores["TechLead"]) / 3)
                if not [one for one in evidence if one.found]:
                    final_score = 1
                apart = highest - lowest
                if apart > 2:
                    raise Disputed
                return max(1, min(5, final_score))
    """
    findings = found(text)
    assert {finding.line for finding in of(findings, "justice.rules")} == {8, 10, 11}
    assert [finding.line for finding in of(findings, "justice.variance")] == [14]


def test_keeping_a_score_in_its_range_is_no_cap() -> None:
    text = "def final_score(scores):\n    score = sum(scores) / 3\n    return max(1, min(5, score))\n"
    assert goals(found(text)) == {"justice.deterministic"}


@each("text, sure", [
    ("def any_name(opinions):\n    s = [o.score for o in opinions]\n    return sum(s) / len(s) + max(s)", 0.9),
    ("def any_name(opinions):\n    return max(o.score for o in opinions)", 0.6),
    ("def any_name(opinions):\n    return [o.name for o in opinions]", 0.0),
    ("def any_name(opinions):\n    total = 0\n    for o in opinions:\n        total += 2 * o.score", 0.9),
])
def test_what_folds_scores_combines_them_whatever_it_is_called(text: str, sure: float) -> None:
    assert [finding.confidence for finding in of(found(text), "justice.deterministic")] == ([sure] if sure else [])


def test_a_model_whose_score_is_capped_by_code_decides_half() -> None:
    text = """
        from langchain_openai import ChatOpenAI
        llm = ChatOpenAI()
        def chief_justice(state):
            answer = llm.invoke(state)
            return min(3, answer.score)
    """
    (finding,) = of(found(text), "justice.model_decides")
    assert finding.confidence == 0.5


def test_what_was_looked_at_is_counted() -> None:
    reader = Table("justice.")
    detected(reader, "def f(score): ...\ndef g(x): ...\ndef h(x): return x.final_score\n")
    assert reader.examined["score_functions"] == 2


@each("text, sure", [
    ("open('a.md', 'w')", 0.9),
    ("import io\nio.open(file, mode='w')\nfile.with_suffix('.md').write_text(x)", 0.9),
    ("from pathlib import Path\nPath('report.json').write_text(data)", 0.7),
    ("from pathlib import Path\nPath('data.json').write_text(data=verdict)", 0.7),
    ("def save_report(path, text):\n    path.write_text(text)", 0.6),
    ("def f(path, markdown):\n    path.write_text(markdown)", 0.6),
    ("from pathlib import Path\nPath('data.json').write_text(data)", 0.0),
    ("def save(path, verdict):\n    path.write_text(verdict)", 0.0),
    ("path.open('w')", 0.0),
])
def test_a_file_is_the_surer_a_report_the_more_its_name_says_so(text: str, sure: float) -> None:
    assert [finding.confidence for finding in of(found(text), "justice.report_file")] == ([sure] if sure else [])


@each("text, sure", [
    ("def dissent(opinions): return 1", 0.9),
    ("dissent = told(opinions)", 0.8),
    ("r = Result(minority_opinion=told)", 0.8),
    ("r = Result(dissent='')", 0.0),
    ("r = Result(dissent=None)", 0.0),
    ("r = Result(opinion=told)", 0.0),
    ("class Result:\n    dissent: str = 'none'", 0.0),
])
def test_a_dissent_counts_where_it_is_told(text: str, sure: float) -> None:
    assert [finding.confidence for finding in of(found(text), "justice.dissent")] == ([sure] if sure else [])
