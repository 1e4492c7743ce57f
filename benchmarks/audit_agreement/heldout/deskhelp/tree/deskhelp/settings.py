from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="DESKHELP_", env_file=".env", extra="ignore")

    db: str = "deskhelp.sqlite"
    max_refund: float = 150.0
    model: str = "gpt-4o-mini"


settings = Settings()
