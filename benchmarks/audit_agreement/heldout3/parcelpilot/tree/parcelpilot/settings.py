from functools import cache

from pydantic import HttpUrl, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="PARCELPILOT_", env_file=".env", extra="ignore")

    gateway: HttpUrl
    token: SecretStr
    model: str = "gpt-4o-mini"
    database: str = "parcelpilot.sqlite"
    seconds: float = 10.0


@cache
def settings() -> Settings:
    return Settings()
