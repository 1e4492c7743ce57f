from apex.graph import build


def test_graph_compiles():
    assert build() is not None


def test_verdict():
    state = build().invoke({"repo_url": "https://github.com/acme/app", "pdf_path": "report.pdf"})
    assert "Supreme Verdict" in state["final_report"]
    assert len(state["opinions"]) == 18
