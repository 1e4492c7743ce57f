from benchbook.records import Criterion, Finding, Opinion, Vote
from benchbook.ruling import rule

TOOLS = Criterion(id="tools", name="Tool safety", look="no shell")


def finding(id, holds=True, flaw=False):
    return Finding(id=id, source="code", criterion="tools", statement="x", place="a.py:1", holds=holds, flaw=flaw)


def votes(prosecutor, defence, engineer, cites=("c1",)):
    return [Opinion(role=role, criterion="tools", vote=Vote(score=score, reason="long enough to be one", cites=cites))
            for role, score in (("prosecutor", prosecutor), ("defence", defence), ("engineer", engineer))]


def test_the_engineer_weighs_double():
    assert rule(TOOLS, votes(2, 4, 4), [finding("c1")]).score == 4
    assert rule(TOOLS, votes(2, 4, 2), [finding("c1")]).score == 2


def test_a_flaw_caps():
    ruled = rule(TOOLS, votes(5, 5, 5), [finding("c1"), finding("c2", holds=False, flaw=True)])
    assert ruled.score == 3 and "Capped" in ruled.notes[-1]


def test_praise_without_evidence_does_not_count():
    ruled = rule(TOOLS, votes(2, 5, 2, cites=()), [finding("c1", holds=False)])
    assert ruled.score == 2 and any("does not count" in note for note in ruled.notes)


def test_dissent_is_told():
    assert any(note.startswith("Dissent") for note in rule(TOOLS, votes(1, 5, 3), [finding("c1")]).notes)
