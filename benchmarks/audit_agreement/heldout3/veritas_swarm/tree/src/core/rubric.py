RUBRIC = [
    {"id": "git_forensic_analysis", "name": "Git Forensic Analysis"},
    {"id": "state_management_rigor", "name": "State Management Rigor"},
    {"id": "graph_orchestration", "name": "Graph Orchestration"},
    {"id": "safe_tool_engineering", "name": "Safe Tool Engineering"},
    {"id": "judicial_nuance", "name": "Judicial Nuance"},
]
