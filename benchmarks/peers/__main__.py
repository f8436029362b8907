"""The tools one would pick instead, replayed side by side: runs the missing searches, then writes the report.

``make peers`` does it with the defaults: all jobs and all tools, the slow ones on a few seeds only (on as many as the
others where ``--peers`` names them), and on a few seeds harder forms of the jobs that ship. Interrupt it and start it
again as you like.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from benchmarks.kept import PAPERS, Kept, options, ready_tables, run_missing, table_digest
from benchmarks.peers.entrants import ENTRANTS, entrant_named
from benchmarks.peers.report import Finds, write_report
from benchmarks.peers.store import Finished, Search, read_finished, run_one
from benchmarks.tables.public_jobs import public_jobs
from benchmarks.variants import NOISE, PLAIN, VARIANTS

NAME = "peers"
FIRST_SEED, SEEDS = 7100, 10  # nothing was chosen on these
HARDER = tuple(name for name in VARIANTS if name != PLAIN)
SLOW_SEEDS = 2  # of tools whose searches take minutes
HARDER_SEEDS = 3  # of harder forms


def main(arguments: Sequence[str] | None = None) -> None:
    names = [one.name for one in ENTRANTS]
    parser = options(__doc__.splitlines()[0], NAME)
    parser.set_defaults(processes=2, first_seed=FIRST_SEED, seeds=SEEDS)
    parser.add_argument("--peers", nargs="+", choices=names, metavar="PEER", help=", ".join(names))
    chosen = parser.parse_args(arguments)
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    quick = [one.name for one in ENTRANTS if not one.is_slow]
    if not chosen.report_only:
        versions = {name: entrant_named(name).version() for name in chosen.peers or names}
        tables = [*ready_tables(chosen.tables), *([] if chosen.tables else public_jobs())]
        slow = [] if chosen.peers else [name for name in names if name not in quick]
        # Seed by seed, so that a run that is ended has all peers on the same seeds.
        searches = [
            Search(table, variant, peer, seed, chosen.trials, table_digest(table), versions[peer])
            for variants, peers, some in (
                ((PLAIN,), chosen.peers or quick, seeds),
                (HARDER, chosen.peers or quick, seeds[:HARDER_SEEDS]),
                ((PLAIN,), slow, seeds[:SLOW_SEEDS]),
            )
            for seed in some
            for variant in variants
            for table in tables
            if has_form(table, variant)
            for peer in peers
        ]
        run_missing(searches, run_one, Kept(chosen.cache), chosen.processes, chosen.again)
    finished = [
        one for one in read_finished(chosen.cache) if one.search.seed in seeds and one.search.trials == chosen.trials
    ]
    named = chosen.peers or quick
    closely = [one for one in finished if one.search.table not in public_jobs() and one.search.peer in named]
    harder = [one for variant in HARDER for one in complete(finished, quick, variant)]
    print(write_report(Finds(complete(finished, quick), complete(finished, names), closely, harder), chosen.out))


def has_form(table: str, variant: str) -> bool:
    """Whether a job takes part in that form: as it is, or in a harder one that its measurements allow, if it ships."""
    return variant == PLAIN or (table not in public_jobs() and (variant != NOISE or table in PAPERS))


def complete(finished: Sequence[Finished], peers: Sequence[str], variant: str = PLAIN) -> list[Finished]:
    """Searches of these tools, with seeds that all of them have on every job: who has fewer may have been lucky."""
    here = [one for one in finished if one.search.peer in peers and one.search.variant == variant]
    jobs = {one.search.table for one in here}
    having = Counter(one.search.seed for one in here)
    return [one for one in here if having[one.search.seed] == len(jobs) * len(peers)]


if __name__ == "__main__":
    main()
