"""The JSON of a command, in the shape that all commands share (``report.output``)."""

from kteardown.report.output import output_of
from kteardown.report.publication import Publication


def render(publication: Publication) -> str:
    """Return the JSON with a newline at the end; keys in the order of the model, never NaN."""
    return output_of(publication).model_dump_json(indent=1, by_alias=True) + "\n"
