"""The report on what was measured: Table I of the TrimTuner paper and Table 5.1 of the thesis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.papers import papers
from benchmarks.papers.jobs import Job, load
from benchmarks.papers.markdown import table
from trimtuner.engines.table import Table
from trimtuner.problem.catalog import built_in_catalog
from trimtuner.problem.expressions import Value


def write_space(jobs: Sequence[Job]) -> list[str]:
    """Both tables, as paragraphs: what is printed beside what the tables that we replay hold."""
    tables = {job.title: load(job) for job in jobs}
    return [
        "### TrimTuner, Table I: parameters",
        table(["parameter", "printed", *tables], _rows_of_table_1(tables)),
        f"{_sizes(tables)} The characteristics of the machines are those of the catalogue that is shipped.",
        "### Thesis, Table 5.1: parameters",
        table(["parameter", "printed", *tables], _rows_of_table_5_1(tables)),
        "The learning rate printed twice (10⁻³, in the text that we have of it) must be 10⁻⁴ once, as in Table I.",
    ]


def _rows_of_table_1(tables: Mapping[str, Table]) -> Iterator[list[str]]:
    for parameter, printed in papers.TABLE_I.items():
        yield [parameter, _listed(printed), *(_same(printed, values_of(one, parameter)) for one in tables.values())]
    machines = built_in_catalog("aws")
    for vm_type, (vcpus, memory, counts) in papers.TABLE_I_MACHINES.items():
        known = machines[vm_type]
        is_same = (known.vcpus, known.memory_gib) == (vcpus, memory)
        name = f"{vm_type}: {vcpus} vCPU, {memory} GB{'' if is_same else ' (**not so in the catalogue**)'}"
        shown = [_same(counts, values_of(one, "vm_count", vm_type)) for one in tables.values()]
        yield [name, _listed(counts), *shown]


def _rows_of_table_5_1(tables: Mapping[str, Table]) -> Iterator[list[str]]:
    for parameter, printed in papers.TABLE_5_1.items():
        shown = [_same(printed, _cores(one) if parameter == "cores" else values_of(one, parameter))
                 for one in tables.values()]  # fmt: skip
        yield [parameter, _listed(printed), *shown]


def values_of(measured: Table, parameter: str, vm_type: str | None = None) -> set[Value]:
    """The values that a parameter takes in a table (with one kind of machine), or the fractions in per cent."""
    if parameter == "data-set size (%)":
        return {round(100.0 * fraction, 2) for fraction in measured.space.fractions}
    return {one[parameter] for one in measured.configurations if vm_type in (None, one["vm_type"])}


def _cores(measured: Table) -> set[Value]:
    """Workers times vCPUs of one."""
    return {
        int(str(one["vm_count"])) * papers.TABLE_I_MACHINES[str(one["vm_type"])][0] for one in measured.configurations
    }


def _same(printed: Sequence[Value], counted: set[Value]) -> str:
    return "*same*" if set(printed) == counted else f"**{_listed(sorted(counted, key=str))}**"


def _listed(values: Sequence[Value]) -> str:
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def _sizes(tables: Mapping[str, Table]) -> str:
    found = ", ".join(
        f"{title} {len(one.configurations)} configurations and {len(one.cells)} with a data-set size"
        for title, one in tables.items()
    )
    return f"Printed: 288 configurations for each data-set size, 1440 in all; in our tables: {found}."
