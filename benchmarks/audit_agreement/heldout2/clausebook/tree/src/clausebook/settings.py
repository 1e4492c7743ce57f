from functools import lru_cache

from pydantic import Field, HttpUrl, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="CLAUSEBOOK_", env_file=".env", extra="ignore")

    endpoint: HttpUrl
    model: str
    token: SecretStr = SecretStr("")
    at_once: int = Field(default=4, ge=1, le=32)
    timeout_s: float = Field(default=60, gt=0)
    attempts: int = Field(default=3, ge=1, le=5)


@lru_cache
def settings() -> Settings:
    return Settings()
