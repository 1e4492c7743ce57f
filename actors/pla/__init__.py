"""The PLA: the brain proposes, the warden decides what may be typed, the HID link has it typed (docs/design.md §16)."""

from typing import Final

from actors.area import Area

AREA: Final = Area(
    name="pla",
    families=("hid", "pla"),
    contracts=("contracts.pla_events", "contracts.hid"),
    actors={
        "brain": "actors.pla.brain.actor:Brain",
        "warden": "actors.pla.warden.actor:Warden",
        "hid": "actors.pla.hid.actor:HidLink",
    },
    after=("audit",),
    projections=("projections.pla.sessions:Sessions",),
    lines="actors.pla.lines:LINES",
    libraries={"fastjsonschema": "fastjsonschema>=2.22,<3"},
    laws=("replay.simulation.invariants_pla:check_pla_ended",),
    rests=("replay.simulation.invariants_pla:check_pla_idle",),
    outside=("frames.*", "line.*"),
)
