from functools import cache

from pydantic import Field, HttpUrl, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="RANDNOTIZ_", env_file=".env", extra="ignore")

    archive: HttpUrl
    token: SecretStr
    model: str = "gpt-4o-mini"
    most: int = Field(25, ge=1, le=60, description="sentences that are checked per article")
    seconds: float = Field(20, gt=0)


@cache
def settings() -> Settings:
    return Settings()
