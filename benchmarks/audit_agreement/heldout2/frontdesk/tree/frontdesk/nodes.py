from datetime import datetime
from typing import Literal

from langchain_core.exceptions import OutputParserException
from langchain_openai import ChatOpenAI
from langgraph.types import Command, interrupt
from pydantic import ValidationError

from . import diary
from .flags import red_flags
from .forms import Case, Complaint, Urgency

MAX_ASKED = 2
SURE = 0.6
INSTRUCTION = """Fill in the form for a message to a doctor's practice. You do not diagnose. If you are unsure between two
urgencies choose the more urgent one and say so by a lower certainty."""


def model():
    return ChatOpenAI(model="gpt-4o-mini", temperature=0, timeout=20, max_retries=1, max_tokens=300)


def screen(case: Case) -> Command[Literal["nurse", "understand"]]:
    """Red flags go to a human being at once, no model in between."""
    flags = red_flags(case.message)
    if flags:
        return Command(goto="nurse", update={"flags": flags, "notes": f"red flags: {', '.join(flags)}"})
    return Command(goto="understand")


def understand(case: Case) -> Command[Literal["understand", "nurse", "find_slot", "answer"]]:
    asked = case.asked + 1
    try:
        complaint = model().with_structured_output(Complaint).invoke([("system", INSTRUCTION), ("user", case.message)])
    except (ValidationError, OutputParserException) as error:
        again = "understand" if asked < MAX_ASKED else "nurse"
        return Command(goto=again, update={"asked": asked, "notes": f"attempt {asked}: {error}"[:300]})
    update = {"asked": asked, "complaint": complaint}
    if complaint.urgency is Urgency.emergency or complaint.certainty < SURE:
        return Command(goto="nurse", update=update)
    return Command(goto="find_slot" if complaint.wants_appointment else "answer", update=update)


def find_slot(case: Case) -> Command[Literal["confirm", "nurse"]]:
    slot = diary.free_slot(case.complaint.urgency, datetime.now())
    if slot is None:
        return Command(goto="nurse", update={"notes": f"no free slot for {case.complaint.urgency}"})
    return Command(goto="confirm", update={"slot": slot})


def confirm(case: Case) -> dict:
    """Nothing is written before this returns from the interrupt."""
    word = interrupt({"patient": case.patient, "summary": case.complaint.summary, "slot": case.slot.starts.isoformat()})
    if word != "yes":
        return {"notes": "the nurse declined", "reply": "We will call you to find a time."}
    try:
        diary.book(case.slot, case.patient)
    except diary.SlotTaken as gone:
        return {"notes": str(gone), "reply": "We will call you to find a time."}
    return {"booked": True, "reply": f"Your appointment is on {case.slot.starts:%d %B at %H:%M}."}


def answer(case: Case) -> dict:
    return {"reply": "Thank you. The practice has read your message and will write back within two working days."}


def nurse(case: Case) -> dict:
    """A nurse has to see this one now; the answer says how she did."""
    outcome = interrupt({
        "patient": case.patient,
        "urgent": bool(case.flags) or bool(case.complaint and case.complaint.urgency is Urgency.emergency),
        "why": case.flags or case.notes,
        "message": case.message,
    })
    return {"notes": f"nurse: {outcome}", "reply": str(outcome)}
