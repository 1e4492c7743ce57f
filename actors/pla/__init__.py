"""The PLA: the brain proposes, the warden decides what may be typed, the HID link has it typed (docs/design.md §16)."""

from typing import Final

from pmagent.actors.core.area import Area

AREA: Final = Area(
    name="pla", families=("hid", "pla"), contracts=("pmagent.contracts.pla_events", "pmagent.contracts.hid"),
    actors={
        "brain": "pmagent.actors.pla.brain.actor:Brain", "warden": "pmagent.actors.pla.warden.actor:Warden",
        "hid": "pmagent.actors.pla.hid.actor:HidLink",
    },
    after=("audit",), projections=("pmagent.projections.sessions.sessions:Sessions",),
    lines="pmagent.actors.pla.lines:LINES", alerts="pmagent.actors.pla.alerts:ALERTS",
    libraries={"fastjsonschema": "fastjsonschema>=2.22,<3"},
    laws=("pmagent.replay.areas.invariants_pla:check_pla_ended",),
    rests=("pmagent.replay.areas.invariants_pla:check_pla_idle",), impure=("frames.*", "line.*"),
    words=(
        "pmagent.contracts.pla:KEYS", "pmagent.contracts.pla_documents:TYPES",
        "pmagent.contracts.pla_documents:AbortCode", "pmagent.contracts.pla_documents:DeviceError",
        "pmagent.contracts.pla_documents:EntryType", "pmagent.contracts.pla_words:WORDS",
    ),
)  # fmt: skip
