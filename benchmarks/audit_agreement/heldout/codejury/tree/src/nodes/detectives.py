from src.state import AgentState


def repo_investigator(state: AgentState) -> dict:
    """Forensic analysis of the codebase."""
    return {"evidences": {}}


def doc_analyst(state: AgentState) -> dict:
    """Forensic analysis of the report."""
    return {"evidences": {}}


def vision_inspector(state: AgentState) -> dict:
    """Forensic analysis of diagrams."""
    return {"evidences": {}}


def evidence_aggregator(state: AgentState) -> dict:
    """Synchronisation point."""
    return {}
