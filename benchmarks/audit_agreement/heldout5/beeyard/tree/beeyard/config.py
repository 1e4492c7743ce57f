from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import AnyHttpUrl, BaseModel, Field


class Thresholds(BaseModel):
    swarm_kg: float = Field(1.2, gt=0)
    swarm_minutes: int = Field(40, gt=0)
    robbing_kg_per_hour: float = Field(0.5, gt=0)
    hunger_kg: float = Field(14.0, gt=0)


class Hive(BaseModel):
    name: str = Field(pattern=r"^[a-z0-9-]{2,30}$")
    scale: AnyHttpUrl


class Config(BaseModel):
    database: Path
    chat: str
    thresholds: Thresholds = Thresholds()
    hive: list[Hive] = Field(min_length=1)


def load(path: Path) -> Config:
    return Config.model_validate(tomllib.loads(path.read_text("utf-8")))
