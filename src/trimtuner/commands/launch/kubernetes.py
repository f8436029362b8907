"""A Kubernetes Job: ``kubectl apply -f FILE``."""

from __future__ import annotations

from collections.abc import Mapping

from trimtuner.commands.launch.plan import Plan
from trimtuner.commands.launch.writing import Tree, yaml_text

IMAGE = "<an image with the code and data of the job in its working directory>"

_MIB = 2**20
_USABLE = 0.75  # of a node: it keeps a part of itself for the system, so one that asks for all of it never starts
_SPOT_NODES: Mapping[str, str] = {
    "aws": "eks.amazonaws.com/capacityType: SPOT",
    "azure": "kubernetes.azure.com/scalesetpriority: spot (and a toleration of the taint of that name)",
    "gcp": 'cloud.google.com/gke-spot: "true"',
}


def kubernetes_text(plan: Plan) -> str:
    """The Job; several machines get a Service beside it, so that they find each other by name."""
    documents = [_job(plan)] if plan.vm_count == 1 else [_service(plan), _job(plan)]
    return yaml_text([*plan.story, *_notes(plan)], *documents)


def literal(text: str) -> str:
    """The text as it must be written in a command or a variable: Kubernetes puts in values for ``$(NAME)``."""
    return text.replace("$", "$$")


def _job(plan: Plan) -> dict[str, Tree]:
    spec: dict[str, Tree] = {"backoffLimit": 0, "activeDeadlineSeconds": plan.deadline_seconds}
    pod: dict[str, Tree] = {"restartPolicy": "Never"}
    if plan.vm_count > 1:
        spec |= {"completionMode": "Indexed", "completions": plan.vm_count, "parallelism": plan.vm_count}
        pod["subdomain"] = plan.name
    if plan.home is not None and plan.machines is not None:
        pod["nodeSelector"] = {"node.kubernetes.io/instance-type": plan.machines.vm_type}
    pod["containers"] = [_container(plan)]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": plan.name, "annotations": {"trimtuner/study": plan.study}},
        "spec": {**spec, "template": {"spec": pod}},
    }


def _container(plan: Plan) -> dict[str, Tree]:
    command = [literal(word) for word in plan.command]
    variables = {**plan.environment, **_names_of_all(plan)}
    env: list[Tree] = [{"name": name, "value": literal(value)} for name, value in variables.items()]
    env += [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": f"{plan.name}-secrets", "key": name}}}
        for name in plan.secrets
    ]
    container: dict[str, Tree] = {"name": "train", "image": IMAGE, "command": command, "env": env}
    resources = _resources(plan)
    return {**container, "resources": resources} if resources else container


def _resources(plan: Plan) -> dict[str, Tree]:
    machines = plan.machines
    if machines is None:
        amount: dict[str, Tree] = {} if plan.memory_bytes is None else {"memory": f"{plan.memory_bytes / _MIB:.0f}Mi"}
        return {"requests": amount, "limits": {**amount}} if amount else {}
    usable = 1.0 if plan.home is None else _USABLE
    memory = machines.memory_gib * 1024
    limits: dict[str, Tree] = {"cpu": str(machines.vcpus), "memory": f"{memory:.0f}Mi"}
    requests: dict[str, Tree] = {"cpu": f"{machines.vcpus * 1000 * usable:.0f}m", "memory": f"{memory * usable:.0f}Mi"}
    gpus: dict[str, Tree] = {"nvidia.com/gpu": str(machines.gpus)} if machines.gpus else {}
    return {"requests": {**requests, **gpus}, "limits": {**limits, **gpus}}


def _names_of_all(plan: Plan) -> dict[str, str]:
    """Where the command finds the others, in the words of trimtuner's own engines."""
    if plan.vm_count == 1:
        return {}
    names = [f"{plan.name}-{position}.{plan.name}" for position in range(plan.vm_count)]
    return {"TRIMTUNER_HEAD": names[0], "TRIMTUNER_WORKERS": ",".join(names)}


def _service(plan: Plan) -> dict[str, Tree]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": plan.name},
        "spec": {"clusterIP": "None", "selector": {"job-name": plan.name}},
    }


def _notes(plan: Plan) -> list[str]:
    notes = ["Put in the image: it needs the code of the job, and what it reads, in its working directory."]
    if plan.machines is None:
        notes.append("The job names no machines; add resources to the container if it needs more than a small pod.")
    elif plan.home is None:
        notes.append(
            f"{plan.machines.vm_type} is no provider's machine type, so any node that is large enough will do."
        )
    if plan.is_spot:
        nodes = (
            "" if plan.home is None else f" On such a cluster they have the label {_SPOT_NODES[plan.home.provider]}."
        )
        notes.append(f"It was chosen to run on spot nodes; add them to the nodeSelector.{nodes}")
    if plan.vm_count > 1:
        notes.append(
            "Every pod runs the command, where trials ran it on the first only; JOB_COMPLETION_INDEX is its place."
        )
    if plan.secrets:
        notes.append(f"The Secret {plan.name}-secrets must have the keys {', '.join(plan.secrets)}.")
    return notes
