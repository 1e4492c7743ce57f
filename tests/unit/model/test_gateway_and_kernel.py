"""The gateway under the real OA and kernel watcher: what the mode forbids is not asked, and stops when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pmagent.actors.kernel.actor import KernelWatcher
from pmagent.actors.kernel.surfaces import BOOTSTRAP
from pmagent.actors.oa.actor import Oa
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.effect import EffectCancelled
from pmagent.contracts.kernel import KernelObserved, KernelReadRequested
from pmagent.contracts.model import ModelCallRequested, ModelLimits
from pmagent.contracts.oa import OaPermitRevoked
from tests.support.gateway import GatewayBench

Contents = dict[str, Any]
Observe = Callable[..., KernelObserved]


def started(contents: Contents, observe: Observe) -> GatewayBench:
    """A bench whose kernel has been read once."""
    bench = GatewayBench([KernelWatcher(), Oa()])
    bench.take(DaemonStarted(version="0", python="3", surface="daemon"), run="")
    look(bench, contents, observe)
    return bench


def look(bench: GatewayBench, contents: Contents, observe: Observe) -> None:
    """The surfaces have been read."""
    for reading in bench.open(KernelReadRequested):
        bench.end(reading, observe(contents, request=reading.position))
        return
    bench.take(observe(contents), run="")


def test_a_normal_kernel_permits_and_a_blocked_one_stops_what_runs(green: Contents, observe: Observe) -> None:
    bench = started(green, observe)
    ask = bench.ask()
    [call] = bench.calls
    del green[BOOTSTRAP]
    look(bench, green, observe)
    assert [event.data.permit for event in bench.of(OaPermitRevoked)] == [call.data.permit]
    bench.settle()
    assert EffectCancelled(request=call.position, reason="permit_revoked") in [
        event.data for event in bench.of(EffectCancelled)
    ]
    assert bench.failure(ask).code == "cancelled"
    assert not bench.calls


def test_what_is_forbidden_is_not_asked_and_the_reasons_are_the_oas(green: Contents, observe: Observe) -> None:
    del green[BOOTSTRAP]
    bench = started(green, observe)
    failed = bench.failure(bench.ask())
    assert failed.code == "not_permitted"
    assert failed.text.startswith("feature_work is forbidden in BLOCKED; ")
    assert not bench.of(ModelCallRequested)


def test_a_diagnostic_question_is_permitted_while_the_kernel_is_blocked(green: Contents, observe: Observe) -> None:
    del green[BOOTSTRAP]
    bench = started(green, observe)
    bench.ask(action="diagnostic")
    assert [call.data.action for call in bench.calls] == ["diagnostic"]


def test_a_permit_that_waits_for_the_first_reading_keeps_its_run(green: Contents, observe: Observe) -> None:
    bench = GatewayBench([KernelWatcher(), Oa()])
    bench.take(DaemonStarted(version="0", python="3", surface="daemon"), run="")
    bench.ask(ModelLimits(concurrency=1))
    assert not bench.calls
    look(bench, green, observe)
    assert [call.correlation for call in bench.calls] == ["run"]
