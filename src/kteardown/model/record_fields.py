"""The fields that all records have, and the numbers that they may contain."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

ParamValue = int | str
# What a table can hold, and what sums and ratios of stay finite; NaN is neither.
Int = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Float = Annotated[float, Field(ge=-(2.0**64), le=2.0**64)]
Count = Annotated[int, Field(ge=0, lt=2**63)]
LEAST = 2.0**-64
"""The least measured value that is not 0; ``Value`` says why there is one."""


def _no_smaller(value: float) -> float:
    if value and abs(value) < LEAST:
        raise ValueError("a value other than 0 is at least 2 ** -64")
    return value


Value = Annotated[Float | Int, AfterValidator(_no_smaller)]
"""A measured value: 0, or so far from it that the ratio of any two, and its square, are finite."""


class OpenModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")


class RecordFields(OpenModel):
    boot: Int = -1
    attempt: Count = 0
