"""The options that the grading commands share, and the configuration file behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from click.core import ParameterSource

from falsify_adapters import __version__
from falsify_adapters.cli.command import SectionOption
from falsify_adapters.errors import UsageError

if TYPE_CHECKING:
    from falsify_adapters.results import GateConfig

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

READING, GRADING, WRITING = "What is graded", "How it is graded", "What comes out"
#: Where the context keeps the path of the configuration file.
CONFIG_KEY = "falsify_adapters.config"
MANY = "Many runs"
LOOKING = "Queries that hang together, other judgements, a second system"


class Tau(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.4
    """A number, or "auto"."""

    name = "number|auto"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | Literal["auto"]:
        """Return the threshold."""
        if value == "auto":
            return "auto"
        try:
            return float(value)
        except (TypeError, ValueError):
            self.fail(f"{value!r} is neither a number nor 'auto'", param, ctx)


def option(section: str, *names: str, **settings: Any) -> Callable[[Decorated], Decorated]:
    """Declare an option that stands in a section of the help text."""
    return click.option(*names, cls=SectionOption, section=section, **settings)


def _stack(
    *decorators: Callable[[Decorated], Decorated],
) -> Callable[[Decorated], Decorated]:
    """Apply decorators so that the options stand in the help in the order written here."""

    def decorate(function: Decorated) -> Decorated:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def reading_options(*, keep_self: bool) -> Callable[[Decorated], Decorated]:
    """Declare how runs are read; `keep_self` is what happens to self matches by default."""
    default = "keep" if keep_self else "drop"
    return _stack(
        option(READING, "--top-k", type=int, metavar="K", help="Cut every run to this depth."),
        option(
            READING,
            "--keep-self/--drop-self",
            default=keep_self,
            help=f"Hits that are the query itself [{default}].",
        ),
        option(
            READING, "--exclude", metavar="FILE", help="Documents to leave out: query_id doc_id."
        ),
        option(
            READING,
            "--chunks",
            metavar="REGEX",
            help="Chunk part of ids: best chunk per document.",
        ),
        option(
            READING,
            "--score-order",
            type=click.Choice(["descending", "ascending"]),
            metavar="ORDER",
            help="Of the ranks: descending, or ascending.",
        ),
        option(READING, "--rank-from-column", is_flag=True, help="Rank by the file's rank column."),
        option(READING, "--strict", is_flag=True, help="Refuse inputs that have input warnings."),
    )


def grading_options(function: Decorated) -> Decorated:
    """Declare the options of the gate."""
    return _stack(measure_options(["nDCG@10"], "nDCG@10"), gate_options)(function)


def measure_options(default: list[str], text: str) -> Callable[[Decorated], Decorated]:
    """Declare which measures are graded; `text` says what is graded by default."""
    return _stack(
        option(
            GRADING,
            "--measure",
            "-m",
            "measures",
            multiple=True,
            default=default,
            metavar="NAME",
            help=f"ir-measures' names, repeatable [{text}].",
        ),
        option(
            GRADING,
            "--min-rel",
            type=int,
            metavar="GRADE",
            help="Lowest relevant grade of binary measures [1].",
        ),
    )


def gate_options(function: Decorated) -> Decorated:
    """Declare the options of the gate, measures aside."""
    return _stack(
        option(
            GRADING,
            "--tau",
            type=Tau(),
            default=0.05,
            metavar="X|auto",
            help="What each difference must clear [0.05].",
        ),
        option(
            GRADING,
            "--alpha",
            type=float,
            default=0.05,
            metavar="X",
            help="Error level of all four intervals [0.05].",
        ),
        _count("--n-boot", 1000, "Resamples of the queries"),
        _count("--n-trials", 1000, "Trials of each null"),
        _count("--seed", 0, "Same seed, same numbers"),
        _choice("--permute", ["query", "label"], "What null A permutes"),
        _choice("--marginal", ["document", "set"], "What null D draws"),
        _choice("--decision", ["interval", "point"], "What must clear tau"),
        _choice("--correction", ["bonferroni", "none"], "Of the four intervals"),
        option(
            GRADING,
            "--require-ceiling",
            is_flag=True,
            help="Also ask for tau above the ceiling.",
        ),
    )(function)


def looking_options(function: Decorated) -> Decorated:
    """Declare how queries hang together, and what else a run is compared with."""
    return _stack(
        option(
            LOOKING,
            "--clusters",
            metavar="FILE|auto",
            help="Queries that vary together; auto: by text.",
        ),
        option(
            LOOKING,
            "--blocks",
            metavar="N[:COLUMN]",
            help="N queries in a row vary together.",
        ),
        option(
            LOOKING,
            "--strata",
            metavar="FILE|gold-count",
            help="Null A permutes inside these only.",
        ),
        option(
            LOOKING,
            "--queries",
            metavar="FILE",
            help="Texts and columns, as JSON lines.",
        ),
        option(LOOKING, "--by-grade", is_flag=True, help="Also grade at each grade threshold."),
        option(
            LOOKING,
            "--alt-qrels",
            multiple=True,
            metavar="FILE",
            help="Other judgements: does the verdict hold?",
        ),
        option(LOOKING, "--baseline", metavar="RUN", help="Compare every run with this one."),
    )(function)


def many_options(function: Decorated) -> Decorated:
    """Declare who grades many runs, and where what is finished is kept."""
    return _stack(
        option(MANY, "--jobs", "-j", type=int, default=1, metavar="N", help="Processes [1]."),
        option(MANY, "--scheduler", metavar="ADDRESS", help="Of a Dask cluster that grades."),
        option(MANY, "--resume", metavar="FOLDER", help="Keeps what is graded; goes on from it."),
    )(function)


def run_options(function: Decorated) -> Decorated:
    """Declare what of the gate only makes sense where there is something to grade."""
    return _stack(
        option(GRADING, "--curve", is_flag=True, help="Also grade subsamples of the queries."),
        option(
            GRADING,
            "--plan",
            metavar="FILE",
            is_eager=True,
            callback=_read_plan,
            help="Settings fixed beforehand; says if kept to.",
        ),
    )(function)


def _count(name: str, default: int, text: str) -> Callable[[Decorated], Decorated]:
    return option(
        GRADING, name, type=int, default=default, metavar="N", help=f"{text} [{default}]."
    )


def _choice(name: str, choices: list[str], text: str) -> Callable[[Decorated], Decorated]:
    return option(
        GRADING,
        name,
        type=click.Choice(choices),
        default=choices[0],
        metavar="|".join(choices),
        help=f"{text} [{choices[0]}].",
    )


def writing_options(function: Decorated) -> Decorated:
    """Declare where the report goes."""
    return _stack(
        option(
            WRITING,
            "--json",
            "json_to",
            metavar="FILE|-",
            help="JSON; with - nothing else is on stdout.",
        ),
        option(WRITING, "--markdown", "markdown_to", metavar="FILE|-", help="Markdown tables."),
        option(WRITING, "--html", "html_to", metavar="FILE|-", help="One page with pictures."),
        option(
            WRITING,
            "--playground/--no-playground",
            default=True,
            help="In the page: mixtures with blind predictors [yes].",
        ),
        option(WRITING, "--latex", "latex_to", metavar="FILE|-", help="LaTeX table (booktabs)."),
        option(WRITING, "--csv", "csv_to", metavar="FILE|-", help="One line per report."),
        option(WRITING, "--quiet", "-q", is_flag=True, help="Print nothing but errors."),
        option(WRITING, "--ascii", "ascii_only", is_flag=True, help="Print plain ASCII."),
        option(
            WRITING,
            "--config",
            metavar="FILE",
            is_eager=True,
            expose_value=False,
            callback=_read_config,
            help="TOML of these options; the command line wins.",
        ),
        click.version_option(__version__),
    )(function)


def _read_config(context: click.Context, _parameter: click.Parameter, path: str | None) -> None:
    """Make the file's values the defaults of the other options."""
    if path is None:
        return
    from falsify_adapters.config import read_config

    by_name = option_names(context.command)
    values = read_config(path, frozenset(by_name))
    for name, value in values.items():
        _check_kind(name, value, by_name[name])
    context.meta[CONFIG_KEY] = path
    # a plan stands, whichever of the two was read first
    context.default_map = {**_defaults(by_name, values), **(context.default_map or {})}


def _read_plan(context: click.Context, _parameter: click.Parameter, path: str | None) -> str | None:
    """Make the plan's values the defaults of the other options; they win over --config."""
    if path is not None:
        from falsify_adapters.plan import QRELS, read_plan

        by_name = option_names(context.command)
        values = {name: value for name, value in read_plan(path).items() if name != QRELS}
        context.default_map = {
            **(context.default_map or {}),
            **_defaults(by_name, values),
        }
    return path


def _defaults(by_name: Mapping[str, click.Option], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by parameter name, one for an option that may be repeated as a list."""
    return {
        by_name[name].name or name: [value]
        if by_name[name].multiple and not isinstance(value, list)
        else value
        for name, value in values.items()
    }


def _check_kind(name: str, value: Any, parameter: click.Option) -> None:
    """Refuse what click would turn into another value without a word: 1.5 into 1, true into 1."""
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, bool) != parameter.is_flag:
            wanted = "true or false" if parameter.is_flag else "no true or false"
        elif isinstance(one, float) and isinstance(parameter.type, click.types.IntParamType):
            wanted = "a whole number"
        elif isinstance(one, str) and "\0" in one:
            wanted = "no NUL character"
        else:
            continue
        found = str(one).lower() if isinstance(one, bool) else repr(one)
        raise UsageError(f"--config: {name} takes {wanted}", found=found)


def option_names(command: click.Command) -> dict[str, click.Option]:
    """Return a command's options by the names that a configuration file uses."""
    never = {"config", "help", "plan", "version"}
    return {
        name: parameter
        for parameter in command.params
        if isinstance(parameter, click.Option)
        and (name := _long_name(parameter).replace("-", "_")) not in never
    }


def _long_name(parameter: click.Option) -> str:
    return max(parameter.opts, key=len).lstrip("-")


def was_chosen(name: str) -> bool:
    """Say whether the user chose a value, on the command line or in a configuration file."""
    source = click.get_current_context().get_parameter_source(name)
    return source in (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)


def gate_config(options: Mapping[str, Any]) -> GateConfig:
    """Pick the gate's settings from all options of a command."""
    from falsify_adapters.results import GateConfig

    names = ("tau", "alpha", "n_boot", "n_trials", "seed", "permute", "marginal", "decision")
    return GateConfig(**{name: options[name] for name in (*names, "correction", "require_ceiling")})


def chosen_measures(options: Mapping[str, Any]) -> list[Any]:
    """Return the measures of the options, each once, with the lowest relevant grade set."""
    from falsify_adapters.measures import parse_measure

    measures = [parse_measure(name) for name in options["measures"]]
    min_rel = options["min_rel"]
    if min_rel is not None:
        if min_rel < 1:
            raise UsageError("--min-rel must be at least 1", found=str(min_rel))
        if not any(_takes_grade(measure) for measure in measures):
            raise UsageError(
                "--min-rel needs a binary measure",
                found=", ".join(map(str, measures)),
                hint="graded measures like nDCG use every grade; P, R, AP, RR, Success take one",
            )
        measures = [m(rel=min_rel) if _takes_grade(m) else m for m in measures]
    return list({str(measure): measure for measure in measures}.values())


def _takes_grade(measure: Any) -> bool:
    return "rel" in measure.SUPPORTED_PARAMS and "rel" not in measure.params
