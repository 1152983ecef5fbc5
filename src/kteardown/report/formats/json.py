"""``result.json``: the interface for scripts and dashboards. Equal results give equal bytes."""

from __future__ import annotations

import json

from pydantic import ValidationError

from kteardown.errors import InputError
from kteardown.model.both_clocks import BothClocks
from kteardown.model.result import Result
from kteardown.report.in_words import in_words
from kteardown.report.material import BothMaterial, Measured
from kteardown.report.sentence import sentence


def render(material: Measured) -> str:
    """Return the JSON of a run with its words; that of a run on both clocks has the results of each."""
    if not isinstance(material, BothMaterial):
        return dumps(in_words(material.result, material.workloads))
    both, workloads = material.both, material.workloads
    results = {clock: in_words(result, workloads) for clock, result in both.results.items()}
    return dumps(both.model_copy(update={"results": results, "sentence": sentence(both, workloads)}))


def dumps(result: Result | BothClocks) -> str:
    """Return the result as JSON with a newline at the end; keys in the order of the model, never NaN."""
    fields = result.model_dump(mode="json", by_alias=True)
    return json.dumps(fields, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def loads(text: str | bytes) -> Result:
    """Return the result from JSON. Raises InputError that says what is wrong with it."""
    try:
        result = Result.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"not a result.json: {location + ': ' if location else ''}{first['msg']}",
            hint="`kteardown analyse RUN` makes it again from the run's records.",
        ) from error
    if result.schema_ != 1:
        raise InputError(
            f"result.json has schema {result.schema_}; this kteardown reads schema 1",
            hint="use the kteardown that wrote it, or a newer one.",
        )
    return result
