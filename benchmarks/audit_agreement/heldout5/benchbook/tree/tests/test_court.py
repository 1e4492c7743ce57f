from benchbook import court, investigate, judges
from benchbook.records import Criterion, Opinion, Vote


def test_a_case_is_heard(monkeypatch, tmp_path):
    (tmp_path / "a.py").write_text("import os\nos.system('ls')\n")
    monkeypatch.setattr(investigate, "history", lambda repo: [])
    asked = []

    def judge(role, criterion, findings):
        asked.append((role, criterion.id))
        if role == "defence":
            raise judges.NoOpinion("defence: tired")
        return Opinion(role=role, criterion=criterion.id, vote=Vote(score=5, reason="r" * 20, cites=[]))

    monkeypatch.setattr(judges, "judge", judge)
    criteria = [Criterion(id="tools", name="Tools", look="x")]
    case = court.court.invoke({"address": "a", "repo": str(tmp_path), "pdf": "none.pdf", "criteria": criteria})
    assert len(asked) == 3
    assert [one.split(":")[0] for one in case.silent] == ["report", "defence"]
    assert case.rulings[0].score == 1
