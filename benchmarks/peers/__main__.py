"""The tools one would pick instead, replayed side by side: runs the missing searches, then writes the report.

``make peers`` does it with the defaults. Interrupt it and start it again as you like.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.kept import Kept, options, ready_tables, run_missing, table_digest
from benchmarks.peers.entrants import ENTRANTS, entrant_named
from benchmarks.peers.report import write_report
from benchmarks.peers.store import Search, read_finished, run_one
from benchmarks.tables.public_jobs import public_jobs
from benchmarks.variants import PLAIN, VARIANTS

NAME = "peers"


def main(arguments: Sequence[str] | None = None) -> None:
    names = [one.name for one in ENTRANTS]
    parser = options(__doc__.splitlines()[0], NAME)
    parser.set_defaults(processes=2, seeds=5)  # 29 jobs: more takes hours
    usual = [one.name for one in ENTRANTS if not one.is_slow]
    parser.add_argument("--peers", nargs="+", default=usual, choices=names, metavar="PEER", help=", ".join(names))
    parser.add_argument(
        "--variants",
        nargs="+",
        default=[PLAIN],
        choices=VARIANTS,
        metavar="V",
        help=f"of tables: {', '.join(VARIANTS)}",
    )
    chosen = parser.parse_args(arguments)
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    if not chosen.report_only:
        versions = {name: entrant_named(name).version() for name in chosen.peers}
        tables = ready_tables(chosen.tables or [*ready_tables(None), *public_jobs()])
        # Seed by seed, so that a run that is ended has all peers on the same seeds.
        searches = [
            Search(table, variant, peer, seed, chosen.trials, table_digest(table), versions[peer])
            for seed in seeds
            for table in tables
            for variant in chosen.variants
            for peer in chosen.peers
        ]
        run_missing(searches, run_one, Kept(chosen.cache), chosen.processes, chosen.again)
    finished = [
        one for one in read_finished(chosen.cache) if one.search.seed in seeds and one.search.trials == chosen.trials
    ]
    print(write_report(finished, chosen.out))


if __name__ == "__main__":
    main()
