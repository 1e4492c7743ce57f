"""The OA's reasoning: the actor that runs programs, what it tells models, the rules, and how a run ends
(docs/design.md §13)."""
