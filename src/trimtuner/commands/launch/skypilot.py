"""A SkyPilot task: ``sky launch --down FILE``, or ``sky jobs launch FILE`` to have spot machines replaced."""

from __future__ import annotations

from trimtuner.commands.launch.plan import Plan
from trimtuner.commands.launch.writing import STRICT, Tree, quoted, start_line, yaml_text
from trimtuner.jobs.job import GIB

# The command starts on the first machine and finds the others, as it does under trimtuner's own engines.
_HEAD_ONLY = (
    'if [ "$SKYPILOT_NODE_RANK" != 0 ]; then exit 0; fi',
    'export TRIMTUNER_HEAD="$(head -n 1 <<< "$SKYPILOT_NODE_IPS")"',
    'export TRIMTUNER_WORKERS="$(paste -s -d , - <<< "$SKYPILOT_NODE_IPS")"',
)


def skypilot_text(plan: Plan) -> str:
    """The task, as YAML: resources, variables, secrets by name, and the command."""
    task: dict[str, Tree] = {"name": plan.name, "workdir": str(plan.working_directory), "num_nodes": plan.vm_count}
    resources = _resources(plan)
    if resources:
        task["resources"] = resources
    task["envs"] = {quoted(name): value for name, value in plan.environment.items()}
    if plan.secrets:
        task["secrets"] = dict.fromkeys(map(quoted, plan.secrets))
    limited = ("timeout", str(plan.deadline_seconds), *plan.command)  # SkyPilot itself has no limit on time
    head_only = _HEAD_ONLY if plan.vm_count > 1 else ()
    task["run"] = "\n".join([STRICT, *head_only, start_line(limited), ""])
    return yaml_text([*plan.story, *_notes(plan)], task)


def _resources(plan: Plan) -> dict[str, Tree]:
    machines = plan.machines
    if machines is None:
        return {} if plan.memory_bytes is None else {"memory": _at_least(plan.memory_bytes / GIB)}
    if plan.home is not None:
        place = plan.home.provider if plan.home.region is None else f"{plan.home.provider}/{plan.home.region}"
        return {"infra": place, "instance_type": machines.vm_type, "use_spot": plan.is_spot}
    size: dict[str, Tree] = {"cpus": _at_least(machines.vcpus), "memory": _at_least(machines.memory_gib)}
    if machines.gpus:
        size["accelerators"] = f"<name of the GPU>:{machines.gpus}"
    return {**size, "use_spot": plan.is_spot}


def _at_least(amount: float) -> str:
    return f"{amount:g}+"


def _notes(plan: Plan) -> list[str]:
    notes = []
    if plan.home is None:
        notes.append("The job names no provider's machines: SkyPilot takes the cheapest that are large enough.")
    if plan.secrets:
        notes.append(f"Secrets are named when it is launched: {' '.join(f'--secret {name}' for name in plan.secrets)}")
    return notes
