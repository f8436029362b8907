"""A Ray cluster: whether it can be joined, and which of the job's machines it offers."""

from __future__ import annotations

from collections.abc import Iterator

from trimtuner.engines.checks import Check, Workload, failed, fine, warning
from trimtuner.engines.protocol import EngineTrouble
from trimtuner.engines.ray.settings import RaySettings
from trimtuner.engines.supervising.checks import check_fence


def checks_of(work: Workload, settings: RaySettings) -> Iterator[Check]:
    """The cluster that the job names; one that the engine starts itself needs only Ray."""
    try:
        import ray

        from trimtuner.engines.ray.connection import connect
    except ModuleNotFoundError as error:
        yield failed("ray", f"{error.name!r} is not installed", "pip install 'trimtuner[ray]'")
        return
    if settings.address is None:
        yield fine("ray", f"{ray.__version__}; a cluster is started on this machine, and listens to nobody else")
        yield from check_fence()
        return
    try:
        connect(settings.address)  # which fails where versions or tokens do not match
    except EngineTrouble as trouble:
        yield failed("ray", str(trouble), "start the cluster, or put engine.address right")
        return
    nodes = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    yield fine("ray", f"{ray.__version__}; {settings.address} has {len(nodes)} nodes")
    yield from _check_offers(work, settings, [node["Resources"] for node in nodes])


def _check_offers(work: Workload, settings: RaySettings, offers: list[dict[str, float]]) -> Iterator[Check]:
    cloud = work.cloud
    for vm_type in () if cloud is None else cloud.rented_types:
        count = sum(offer.get(vm_type, 0.0) for offer in offers)
        if count:
            yield fine(vm_type, f"{count:g} offered")
        else:
            advice = f"start nodes with --resources='{{\"{vm_type}\": 1}}', unless an autoscaler does"
            yield warning(vm_type, f"no node offers it now; trials wait {settings.wait:g} s for one", advice)
