"""The bench: structured deliberation by three personas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langchain_core.prompts import ChatPromptTemplate

from ..core.models import Evidence, Opinion, Persona
from ..core.state import DIMENSIONS, TribunalState
from .personas import CHARTERS

TEMPERAMENT = {Persona.PROSECUTOR: 4, Persona.DEFENDER: 5, Persona.TECH_LEAD: 5}


@dataclass
class Judge:
    persona: Persona
    model: str = "gpt-4o"
    max_retries: int = 3

    @cached_property
    def chain(self) -> Any:
        """Prompt and model, bound to the schema of an opinion."""
        from langchain_openai import ChatOpenAI

        prompt = ChatPromptTemplate.from_messages([("system", CHARTERS[self.persona]), ("human", "{evidence}")])
        llm = ChatOpenAI(model=self.model, temperature=0, timeout=45, max_retries=self.max_retries)
        return prompt | llm.with_structured_output(Opinion)

    def deliberate(self, dimension: str, evidence: list[Evidence]) -> Opinion:
        """Weigh the evidence of one dimension."""
        exhibits = [item for item in evidence if item.dimension == dimension]
        strength = sum(item.confidence for item in exhibits) / max(len(exhibits), 1)
        score = TEMPERAMENT[self.persona]
        return Opinion(
            persona=self.persona, dimension=dimension, score=score,
            argument=f"{self.persona.value} finds {dimension} convincing (strength {strength:.2f})",
            citations=tuple(item.finding for item in exhibits),
        )


def _sit(persona: Persona, state: TribunalState) -> TribunalState:
    judge = Judge(persona)
    return {"opinions": [judge.deliberate(dimension, state.get("evidence", [])) for dimension in DIMENSIONS]}


def prosecutor(state: TribunalState) -> TribunalState:
    return _sit(Persona.PROSECUTOR, state)


def defender(state: TribunalState) -> TribunalState:
    return _sit(Persona.DEFENDER, state)


def tech_lead(state: TribunalState) -> TribunalState:
    return _sit(Persona.TECH_LEAD, state)
