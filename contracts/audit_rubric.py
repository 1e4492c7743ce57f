"""A rubric: what an audit judges, and by which rules (docs/design.md §15.7).

The shape only; what the parts have to do with each other (no id twice, goals that exist) is in
``actors/audit/rubric.py``. Keys beyond these are kept, but for ``synthesis_parameters``, where one would be a number
that nobody goes by.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pmagent.contracts.audit_events import DIMENSIONS_MAX
from pmagent.contracts.payload import END

GOALS_MAX: Final = 60
"""Most goals of one dimension."""

TargetArtifact = Literal["github_repo", "pdf_report", "pdf_images"]
TARGETS: Final[tuple[TargetArtifact, ...]] = ("github_repo", "pdf_report", "pdf_images")
"""The artifacts that a dimension may be about; the repository's detective, the report's, and the one for its images."""

Text = Annotated[str, Meta(pattern=r"\S", description="a text that is not blank")]
DimensionName = Annotated[
    str,
    Meta(
        pattern=r"^(?=[\s\S]*\S)[^\x00-\x1f\x7f-\x9f]{1,100}" + END,
        description="a text of 1 to 100 characters on one line, not blank",
    ),
]
GoalName = Annotated[str, Meta(description="the id of a goal")]


class RubricPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of the parts of a rubric: keys that are not known are left alone."""


class RubricMetadata(RubricPart, frozen=True, kw_only=True):
    """The rubric's name, purpose and version; each may be left out."""

    rubric_name: Annotated[str, Meta(description="a text")] | UnsetType = UNSET
    grading_target: Annotated[str, Meta(description="a text")] | UnsetType = UNSET
    version: Annotated[str | int | float, Meta(description="a text or a number")] | UnsetType = UNSET


class RubricDimension(RubricPart, frozen=True, kw_only=True):
    """A criterion. ``judicial_logic`` goes into the judges' prompts, as one text for all or one for each persona;
    ``goals`` names what detectives look for (left out: follows from the texts); ``architecture``: the Tech Lead's score
    counts more; ``where_applicable`` false: what a repository has no occasion for counts against it all the same."""

    id: DimensionName
    name: DimensionName
    target_artifact: TargetArtifact
    forensic_instruction: Text
    success_pattern: Text
    failure_pattern: Text
    judicial_logic: (
        Annotated[str | dict[str, str], Meta(description="a text, or an object of texts by persona")] | UnsetType
    ) = UNSET
    goals: (
        Annotated[
            list[GoalName],
            Meta(min_length=1, max_length=GOALS_MAX, description=f"a list of 1 to {GOALS_MAX} ids of goals"),
        ]
        | UnsetType
    ) = UNSET
    architecture: Annotated[bool, Meta(description="true or false")] | UnsetType = UNSET
    where_applicable: Annotated[bool, Meta(description="true or false")] | UnsetType = UNSET


class RubricRules(RubricPart, frozen=True, kw_only=True):
    """The chief justice's rules in the rubric's words; none may be missing."""

    security_override: Text
    fact_supremacy: Text
    functionality_weight: Text
    dissent_requirement: Text
    variance_re_evaluation: Text


class RubricParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The numbers of the rules: the highest score beside a confirmed security flaw; the widest spread of scores that is
    not re-evaluated; how often the Tech Lead's score counts on architecture; whether security caps the total too."""

    security_cap: Annotated[int, Meta(ge=1, le=5, description="a whole number from 1 to 5")] | UnsetType = UNSET
    spread: Annotated[int, Meta(ge=0, le=4, description="a whole number from 0 to 4")] | UnsetType = UNSET
    tech_lead_weight: Annotated[int, Meta(ge=1, le=10, description="a whole number from 1 to 10")] | UnsetType = UNSET
    total_cap: Annotated[bool, Meta(description="true or false")] | UnsetType = UNSET


class RubricDocument(RubricPart, frozen=True, kw_only=True):
    """The whole rubric."""

    rubric_metadata: Annotated[RubricMetadata, Meta(description="an object: rubric_name, grading_target, version")]
    dimensions: Annotated[
        list[RubricDimension],
        Meta(min_length=1, max_length=DIMENSIONS_MAX, description=f"a list of 1 to {DIMENSIONS_MAX} objects"),
    ]
    synthesis_rules: RubricRules
    synthesis_parameters: RubricParameters | UnsetType = UNSET
