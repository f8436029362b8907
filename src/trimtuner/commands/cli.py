"""The command line. Only light imports here: what a command needs is imported when it runs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from trimtuner import __version__
from trimtuner.commands.catalog.command import app as catalog_app
from trimtuner.errors import InputError, TrimTunerError, words_of

if TYPE_CHECKING:
    from trimtuner.jobs.studies import JobStudy
    from trimtuner.state import StudyState
    from trimtuner.tuning.recommendation import Recommendation

EXIT_UNREAD = 1  # nobody read the output to its end
EXIT_BAD_INPUT = 2  # what was given is wrong, or something is in the way; the message says what to do
EXIT_NO_ANSWER = 3  # nothing wrong, but there is no answer yet

app = typer.Typer(
    name="trimtuner",
    help="Find the best configuration for a training job, mostly on small shares of its data.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


app.add_typer(catalog_app)


def main() -> None:
    """Run the command line; an error of ours, or of the system, is one line on standard error and exit code 2."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, where what goes wrong can still be said
    except TrimTunerError as error:
        # Faults of a job file begin with file and line, as editors and people expect.
        _leave(EXIT_BAD_INPUT, f"{error}\n" if hasattr(error, "lines") else f"trimtuner: {error}\n")
    except BrokenPipeError:
        _leave(EXIT_UNREAD)  # whoever reads our output has seen enough, as "head" has
    except OSError as error:
        _leave(EXIT_BAD_INPUT, f"trimtuner: {words_of(error)}\n")


def _leave(code: int, words: str = "") -> NoReturn:
    """Say it and end. What cannot be written stays unwritten: Python would try again at its end, and complain."""
    for stream, text in ((sys.stdout, ""), (sys.stderr, words)):
        try:
            stream.write(text)
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    raise SystemExit(code) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"trimtuner {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


JobPath = Annotated[Path, typer.Argument(help="The job file.", metavar="JOB")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="Where to write it.", metavar="JOB")] = Path("job.yaml"),
    with_schema: Annotated[
        bool,
        typer.Option("--schema", help="Also write the schema beside it, so that editors complete and check the file."),
    ] = False,
) -> None:
    """Write a commented job file to start from; never over a file that is there."""
    from trimtuner.jobs.starter import write_init, write_init_with_schema

    if with_schema:
        print(f"wrote {write_init_with_schema(path)}")
    else:
        write_init(path)
    print(f"wrote {path}; edit it, then: trimtuner validate {path}")


@app.command()
def schema(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write; over an older schema, never over another file."),
    ] = None,
) -> None:
    """Print the JSON schema of job files, by which editors complete and check them.

    A job file names it in its first line: '# yaml-language-server: $schema=FILE' for VS Code and others,
    '# $schema: FILE' for JetBrains. 'trimtuner init --schema' writes both lines, and the schema beside the job file.
    """
    from trimtuner.jobs.schema import schema_text, write_schema

    if output is None:
        print(schema_text(), end="")
        return
    write_schema(output)
    print(f"wrote {output}")


@app.command()
def validate(job: JobPath, as_json: AsJson = False) -> None:
    """Check a job file without running anything: the space, the worst case of a trial, what the budget allows."""
    from trimtuner.jobs.load import load_job
    from trimtuner.jobs.validation import validate_text, validation

    loaded = load_job(job)
    told = validation(loaded)
    print(json.dumps(told, indent=2) if as_json else validate_text(loaded))
    if not told["is_valid"]:
        raise typer.Exit(EXIT_BAD_INPUT)


@app.command()
def run(
    job: JobPath,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the recommendation, at the end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start or resume the study of a job file, and run it until it is over.

    Interrupt once to start nothing more and wait for the running trials, twice to leave at once: running trials then go
    on until their time-out, and the next run adopts them.
    """
    from trimtuner.commands.running import run_job
    from trimtuner.jobs.studies import JobStudy
    from trimtuner.jobs.validation import require_valid
    from trimtuner.study.telling import best_text, money_line, savings_text, status

    of = JobStudy.at(job)
    warnings = require_valid(of.job)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    reason = run_job(of, is_quiet=quiet or as_json)
    state = of.state()
    recommendation = state.recommendation
    if as_json:
        print(json.dumps({**status(state), "warnings": list(warnings), "ended": reason}, indent=2))
        raise typer.Exit(0 if recommendation else EXIT_NO_ANSWER)
    print(f"over: {reason}")
    if recommendation is None:
        print(f"nothing was measured; how each log ends is in the report: trimtuner report {job}")
        print(f"failures of a command that is mended by now are forgotten with: trimtuner forget {job} --failed")
        raise typer.Exit(EXIT_NO_ANSWER)
    print(best_text(state, recommendation))
    print(savings_text(state) or money_line(state))


@app.command()
def status(job: JobPath, as_json: AsJson = False) -> None:
    """Money, trials and the recommendation, as they stand; never in the way of a run."""
    from trimtuner.study.telling import status as status_of
    from trimtuner.study.telling import status_text

    state = _opened(job).judged_state()
    print(json.dumps(status_of(state), indent=2) if as_json else status_text(state))


@app.command()
def best(
    job: JobPath,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="What launches it there: skypilot, sagemaker, kubernetes or bash.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="With --format, the file to write; never over one.")
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            help="The best for a run that costs at most so much: USD, or the unit of what is minimised, such as 20min.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The recommendation, with the command line that trains it, or with --format what launches it elsewhere.

    Where one metric is maximised and another minimised: the best for every price, and the knee.
    """
    from trimtuner.study.telling import answered, best_text, recommendation_text, recommended

    if form is None and output is not None:
        raise InputError("--output is for what launches the recommendation; say --format bash, or another")
    if form is not None and as_json:
        raise InputError("--json and --format are two forms of the answer; choose one")
    of = _opened(job)
    state = of.judged_state()
    recommendation = state.recommendation
    if recommendation is None:
        print("nothing was measured yet", file=sys.stderr)
        raise typer.Exit(EXIT_NO_ANSWER)
    if within is not None:
        recommendation = _best_within(state, within)
    if form is not None:
        _tell_launch(of, state, recommendation, form, output)
        return
    tell, text = (answered, best_text) if within is None else (recommended, recommendation_text)
    told = {**tell(state, recommendation), "differs_from_record": list(state.differing)}
    print(json.dumps(told, indent=2) if as_json else text(state, recommendation))


def _opened(job: Path) -> JobStudy:
    """The study of a job file, to be read; where the file differs from it, that is said."""
    from trimtuner.jobs.studies import JobStudy

    of = JobStudy.at(job)
    told = of.note
    if told:
        print(f"warning: {told}", file=sys.stderr)
    return of


def _best_within(state: StudyState, limit: str) -> Recommendation:
    from trimtuner.errors import NoAnswer

    try:
        return state.prices.within(limit)
    except NoAnswer as error:
        print(error, file=sys.stderr)
        raise typer.Exit(EXIT_NO_ANSWER) from None


def _tell_launch(
    of: JobStudy, state: StudyState, recommendation: Recommendation, form: str, output: Path | None
) -> None:
    from trimtuner.commands.launch.formats import launch_text, write_launch
    from trimtuner.commands.launch.plan import plan_of

    if output is None:
        print(launch_text(plan_of(of, recommendation, state.history.next_number), form), end="")
        return
    launcher = write_launch(plan_of(of, recommendation, state.history.next_number), form, output)
    print(f"wrote {output}; launch it with: {launcher}")


@app.command()
def report(
    job: JobPath,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file; its ending may say the format. '-': to the terminal."),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="html (one file, the default), md, svg or png.", show_default=False)
    ] = None,
    view: Annotated[
        str | None,
        typer.Option(
            help="For svg and png: spend, progress, tradeoff, curves, machines, timeline, importance or trust."
        ),
    ] = None,
) -> None:
    """Everything there is to see of the study, in one file to send, or one view as a picture."""
    from trimtuner.commands.report import report_text, write_report

    of = _opened(job)
    if output is not None and str(output) == "-":
        print(report_text(of), end="")
        return
    for path in write_report(of, output, form, view):
        print(f"wrote {path}")


@app.command()
def dashboard(
    jobs: Annotated[list[Path], typer.Argument(help="Job files, or folders that hold them.", metavar="JOB...")],
    host: Annotated[str, typer.Option(help="The address to listen on; others can reach 0.0.0.0.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="0: a free one. [default: 8080, if it is free]")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(envvar="TRIMTUNER_DASHBOARD_TOKEN", help="Who has it may look. [default: a new one]"),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let all of this machine look; not for an address that others can reach.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:PORT]", help="A further name that it is opened by: of a proxy, a tunnel, a network."
        ),
    ] = None,
    allow_stop: Annotated[
        bool, typer.Option("--allow-stop", help="Add a button that asks a study to start no more trials.")
    ] = False,
) -> None:
    """A page that shows studies as they go on. It reads their records, and changes nothing unless allowed to."""
    from trimtuner.commands.dashboard.command import Listening, new_token, serve

    if no_token and token is not None:
        raise InputError("--no-token, and a token (--token or TRIMTUNER_DASHBOARD_TOKEN): leave out one of them")
    may_look = None if no_token else new_token() if token is None else token
    serve(jobs, Listening(host, port, may_look, allow_host or (), may_stop=allow_stop))


@app.command()
def trials(job: JobPath, as_json: AsJson = False) -> None:
    """Every trial: where, what it measured, what it cost, how it ended."""
    from trimtuner.study.telling import trial_rows, trials_text

    state = _opened(job).state()
    print(json.dumps(trial_rows(state), indent=2) if as_json else trials_text(state))


@app.command()
def explain(
    job: JobPath,
    trial: Annotated[
        int | None, typer.Argument(help="A trial's number; without it, the recommendation.", metavar="TRIAL")
    ] = None,
) -> None:
    """Why a trial was asked, or why the recommendation is what it is."""
    from trimtuner.study.explaining import explain_text

    print(explain_text(_opened(job).judged_state(), trial))


Experiment = Annotated[
    str | None, typer.Option(help="The experiment in MLflow. [default: named as the study]", show_default=False)
]


@app.command()
def export(
    job: JobPath,
    form: Annotated[
        str | None, typer.Option("--format", help="csv or json. [default: csv]", show_default=False)
    ] = None,
    to_mlflow: Annotated[
        str | None, typer.Option(metavar="URI", help="Log the trials to this MLflow store instead; only new ones.")
    ] = None,
    experiment: Experiment = None,
) -> None:
    """Every measurement, to standard output; or every trial, to MLflow."""
    from trimtuner.commands.transfer import as_csv, export_to_mlflow
    from trimtuner.jobs.studies import JobStudy
    from trimtuner.study.telling import measurement_rows

    if form not in (None, "csv", "json"):
        raise InputError(f"--format {form!r} is neither csv nor json")
    if to_mlflow is not None:
        if form is not None:
            raise InputError("--format and --to-mlflow are two ways to export; choose one")
        print(export_to_mlflow(JobStudy.at(job), to_mlflow, experiment))
        return
    if experiment is not None:
        raise InputError("--experiment is one of MLflow; say where with --to-mlflow")
    rows = measurement_rows(JobStudy.at(job).state())
    print(json.dumps(rows, indent=2) if form == "json" else as_csv(rows), end="\n" if form == "json" else "")


@app.command(name="import")
def import_(
    job: JobPath,
    file: Annotated[
        Path | None,
        typer.Argument(help="CSV or JSON: every parameter, fraction, metrics, time or cost.", metavar="FILE"),
    ] = None,
    from_mlflow: Annotated[
        str | None, typer.Option(metavar="URI", help="Take the finished runs of this MLflow store instead.")
    ] = None,
    experiment: Experiment = None,
    runs: Annotated[
        str, typer.Option(metavar="FILTER", help="Only runs that MLflow's filter finds: \"tags.team = 'vision'\".")
    ] = "",
) -> None:
    """Take in measurements made elsewhere, so that nothing already paid for is bought again."""
    from trimtuner.commands.transfer import further_metrics, import_from_mlflow, read_measurements
    from trimtuner.jobs.studies import JobStudy

    if (file is None) == (from_mlflow is None):
        raise InputError("give what to import: either a FILE, or --from-mlflow URI")
    of = JobStudy.at(job)
    if from_mlflow is not None:
        print(import_from_mlflow(of, from_mlflow, experiment, runs))
        return
    if file is None or experiment is not None or runs:
        raise InputError("--experiment and --runs are for MLflow; say where with --from-mlflow")
    measurements = read_measurements(file, of.problem)
    _, memory = of.open_to_run()
    added, skipped = memory.record.import_measurements(measurements)
    print(f"{added} measurements added, {skipped} known already")
    further = further_metrics(measurements, of.problem)
    if further:
        print(f"kept besides what the study is about: {', '.join(further)}")


@app.command()
def forget(
    job: JobPath,
    trials: Annotated[
        list[int] | None, typer.Argument(help="Numbers of failed trials.", metavar="TRIAL...", show_default=False)
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="All that failed.")] = False,
) -> None:
    """Take failures back, as when the script was wrong: they stay charged, and count for nothing else.

    A forgotten trial is still listed. It counts neither as a trial of the budget nor against its configuration, which
    may be tested again; what it measured on its way is forgotten with it.
    """
    from trimtuner.jobs.studies import JobStudy
    from trimtuner.views.words import usd

    if bool(trials) == failed:
        raise InputError(f"say what to forget: numbers of failed trials, or --failed; see: trimtuner trials {job}")
    of = JobStudy.at(job)
    outcomes = of.record.history().outcomes  # of a study that there is: nothing is made to forget in it
    known = [one.trial.number for one in outcomes if one.failed is not None and not one.is_forgotten]
    numbers = list(dict.fromkeys(trials or known))
    _, memory = of.open_to_run()
    memory.forget(numbers)
    cost = usd(sum(one.cost for one in outcomes if one.trial.number in numbers))
    told = ", ".join(map(str, numbers))
    print(f"forgotten: {told}; their cost of {cost} stays charged" if numbers else "there is no failure to forget")


@app.command()
def stop(
    job: JobPath,
    now: Annotated[bool, typer.Option("--now", help="Also end the running trials.")] = False,
) -> None:
    """Ask every run of the study to start nothing more."""
    from trimtuner.jobs.studies import JobStudy
    from trimtuner.study.driver import stop_now

    of = JobStudy.at(job)
    _, memory = of.open_to_run()
    memory.record.request_stop()
    ended = stop_now(memory, of.engine(memory.record)) if now else []
    print("asked to stop" + (f"; ended trials {', '.join(map(str, ended))}" if ended else ""))


@app.command()
def reap(job: JobPath) -> None:
    """End what still runs for the study although its record does not know it."""
    from trimtuner.engines.protocol import reap as end_unknown
    from trimtuner.jobs.studies import JobStudy

    of = JobStudy.at(job)
    _, memory = of.open_to_run()
    known = {(one.trial.number, one.attempt) for one in memory.record.open_trials()}
    ended = end_unknown(of.engine(memory.record), memory.record.id, known)
    print(f"ended {len(ended)}: {', '.join(f'trial {one.trial}' for one in ended)}" if ended else "nothing to end")


@app.command()
def verify(job: JobPath, as_json: AsJson = False) -> None:
    """Check that the record is as it was written: every row and event by its digest, the file, the ledger beside it."""
    from trimtuner.jobs.load import load_job
    from trimtuner.records.restoring import soundness_of

    found = soundness_of(load_job(job).storage)
    told = {"is_sound": found.is_sound, "looked_at": list(found.looked_at), "faults": list(found.faults)}
    if as_json:
        print(json.dumps(told, indent=2))
    else:
        for what in found.looked_at:
            print(f"looked at: {what}")
        for fault in found.faults:
            print(f"NOT SOUND: {fault}")
        print("sound" if found.is_sound else _WHAT_NOW)
    if not found.is_sound:
        raise typer.Exit(EXIT_BAD_INPUT)


_WHAT_NOW = """what is not listed is as it was written; what now:
  put a copy of the record in its place (with its -wal file if there is one)
  or move it away, and rebuild it from the ledger beside it: trimtuner restore JOB"""


@app.command()
def restore(job: JobPath) -> None:
    """Rebuild a record that was deleted or damaged from the ledger beside it; never over one that is there."""
    from trimtuner.jobs.load import load_job
    from trimtuner.records.restoring import restore as rebuild

    storage = load_job(job).storage
    if not isinstance(storage, Path):
        raise InputError("only a record in a file has a ledger beside it; restore a backup of the database")
    print(f"rebuilt {storage}; {rebuild(storage)}")
    print(f"go on with: trimtuner run {job}")


@app.command()
def doctor(
    job: Annotated[
        Path | None, typer.Argument(help="The job file; without one, only this machine.", metavar="JOB")
    ] = None,
    policy: Annotated[bool, typer.Option("--policy", help="Print the smallest IAM policy for AWS, and leave.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check before a cent is spent: what is installed, the record, and the engine with its credentials and quotas."""
    from trimtuner.commands.doctor import doctor_text, examine, is_ready, policy_of
    from trimtuner.jobs.load import load_job

    loaded = None if job is None else load_job(job)
    if policy:
        print(json.dumps(policy_of(loaded), indent=2))
        return
    checks = examine(loaded)
    told = {"is_ready": is_ready(checks), "checks": [check.as_json() for check in checks]}
    print(json.dumps(told, indent=2) if as_json else doctor_text(checks))
    if not is_ready(checks):
        raise typer.Exit(EXIT_BAD_INPUT)


@app.command()
def tables(as_json: AsJson = False) -> None:
    """List the tables of measurements that replay can find by name."""
    from trimtuner.commands.replay import describe_tables

    found = describe_tables()
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for table in found:
        print(
            f"{table['name']:<10} {table['configurations']:>5} configurations x {table['fractions']}   {table['title']}"
        )


@app.command()
def methods(as_json: AsJson = False) -> None:
    """List the methods: what each optimises, what it needs, when to use it, and its options."""
    from trimtuner.commands.methods import describe_methods, text_of_methods

    print(json.dumps(describe_methods(), indent=2) if as_json else text_of_methods())


@app.command()
def replay(
    table: Annotated[
        str, typer.Argument(help="A table's name (see 'trimtuner tables') or the path of its CSV.", metavar="TABLE")
    ],
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="See 'trimtuner methods'; with options: 'nephele:horizon=1'. May be repeated. [default: trimtuner]",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many searches, each with its own seed.")] = 5,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of the seeds.")] = 0,
    trials: Annotated[int, typer.Option(min=1, help="The most trials of one search.")] = 60,
    budget: Annotated[float | None, typer.Option(help="The most money of one search, in mean full-data runs.")] = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(help="A limit instead of the table's own, such as 'cost <= 0.1'. May be repeated."),
    ] = None,
    snapshots: Annotated[
        bool | None,
        typer.Option(
            "--snapshots/--no-snapshots",
            help="Whether one run measures the smaller fractions on its way. [default: as the table says]",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Searches to run side by side.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for scripts.")] = False,
) -> None:
    """Run methods against a table of measurements: what they spend until their recommendation is good, for good."""
    from trimtuner.commands.replay import ReplayRequest, progress_on_terminal, run_replays, summarise, text_of

    if budget is not None and not budget > 0:
        raise InputError(f"--budget {budget:g} must be above 0; it is in mean full-data runs")
    request = ReplayRequest(
        table,
        tuple(dict.fromkeys(method or ["trimtuner"])),
        first_seed,
        seeds,
        trials,
        budget,
        constraint,
        snapshots,
        jobs,
    )
    with progress_on_terminal(len(request.methods) * seeds) as advance:
        results = run_replays(request, advance)
    summary = summarise(request, results)
    print(json.dumps(summary.as_json(), indent=2) if as_json else text_of(summary))
