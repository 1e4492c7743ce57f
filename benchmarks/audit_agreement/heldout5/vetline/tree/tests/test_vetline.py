from vetline.flow import build_flow
from vetline.schema import Triage, Urgency


def test_flow_builds():
    flow = build_flow()
    assert flow is not None
    assert {"triage", "emergency", "book"} <= set(flow.get_graph().nodes)


def test_triage_schema():
    assert Triage(urgency="emergency", species="dog").urgency == Urgency.EMERGENCY


def test_emergency_is_recognised():
    level = "emergency"
    assert Urgency(level) == Urgency.EMERGENCY
