from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from pydantic import BaseModel, ConfigDict, Field, field_validator


class Booking(BaseModel):
    """A row of the bank's export, normalised."""

    model_config = ConfigDict(frozen=True)

    reference: str = Field(min_length=4, max_length=35)
    booked: date
    amount: Decimal
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    text: str = ""

    @field_validator("booked", mode="before")
    @classmethod
    def german_dates(cls, value: object) -> object:
        if isinstance(value, str) and "." in value:
            return datetime.strptime(value, "%d.%m.%Y").date()
        return value

    @field_validator("amount", mode="before")
    @classmethod
    def comma_decimals(cls, value: object) -> object:
        if isinstance(value, str) and "," in value:
            value = value.replace(".", "").replace(",", ".")
        try:
            return Decimal(str(value))
        except InvalidOperation:
            raise ValueError(f"no amount: {value!r}") from None
