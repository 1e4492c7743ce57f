"""Shared state of all agents."""
import operator
from typing import Annotated, TypedDict

from pydantic import BaseModel, Field


class HourlyForecast(BaseModel):
    hour: int = Field(ge=0, le=23)
    load_mw: float = Field(gt=0)
    confidence: float = Field(ge=0, le=1)


class GridState(TypedDict, total=False):
    region: str
    weather: dict
    load: list[HourlyForecast]
    prices: list[float]
    candidates: Annotated[list[HourlyForecast], operator.add]
    error: float
    approved: bool
    status: str
