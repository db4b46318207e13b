"""The options that the grading commands share, and the configuration file behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from click.core import ParameterSource

from falsify_adapters import __version__
from falsify_adapters.cli.command import Command, SectionOption
from falsify_adapters.errors import UsageError

if TYPE_CHECKING:
    from falsify_adapters.results import GateConfig

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

READING, GRADING, WRITING = "What is graded", "How it is graded", "What comes out"


class Tau(click.ParamType):
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
    default = "kept" if keep_self else "dropped, as BEIR does"
    return _stack(
        option(READING, "--top-k", type=int, metavar="K", help="Cut every run to this depth."),
        option(
            READING,
            "--keep-self/--drop-self",
            default=keep_self,
            help=f"Documents with the query's own id [default: {default}].",
        ),
        option(
            READING,
            "--exclude",
            metavar="FILE",
            help="Documents to leave out per query (query_id doc_id).",
        ),
        option(
            READING,
            "--score-order",
            type=click.Choice(["descending", "ascending"]),
            help="Which scores are best; ascending for distances.",
        ),
        option(
            READING, "--rank-from-column", is_flag=True, help="Rank by the rank column, not scores."
        ),
        option(
            READING,
            "--strict",
            is_flag=True,
            help="Refuse an input that has warnings.",
        ),
    )


def grading_options(function: Decorated) -> Decorated:
    """Declare the options of the gate."""
    return _stack(
        option(
            GRADING,
            "--measure",
            "-m",
            "measures",
            multiple=True,
            default=["nDCG@10"],
            metavar="NAME",
            help="As ir-measures spells it, repeatable [default: nDCG@10].",
        ),
        option(
            GRADING,
            "--min-rel",
            type=click.IntRange(min=1),
            metavar="GRADE",
            help="Lowest relevant grade, for binary measures.",
        ),
        option(
            GRADING,
            "--tau",
            type=Tau(),
            default=0.05,
            show_default=True,
            help="What every difference must clear.",
        ),
        option(
            GRADING,
            "--alpha",
            type=float,
            default=0.05,
            show_default=True,
            help="Error level of the four intervals together.",
        ),
        option(
            GRADING,
            "--n-boot",
            type=int,
            default=1000,
            show_default=True,
            metavar="N",
            help="Resamples of the queries.",
        ),
        option(
            GRADING,
            "--n-trials",
            type=int,
            default=1000,
            show_default=True,
            metavar="N",
            help="Trials of each null.",
        ),
        option(
            GRADING,
            "--seed",
            type=int,
            default=0,
            show_default=True,
            metavar="N",
            help="Same seed, same numbers.",
        ),
        option(
            GRADING,
            "--permute",
            type=click.Choice(["query", "label"]),
            default="query",
            show_default=True,
            help="What null A permutes.",
        ),
        option(
            GRADING,
            "--marginal",
            type=click.Choice(["document", "set"]),
            default="document",
            show_default=True,
            help="What null D draws.",
        ),
        option(
            GRADING,
            "--decision",
            type=click.Choice(["interval", "point"]),
            default="interval",
            show_default=True,
            help="What must clear tau.",
        ),
        option(
            GRADING,
            "--correction",
            type=click.Choice(["bonferroni", "none"]),
            default="bonferroni",
            show_default=True,
            help="Of the four intervals.",
        ),
    )(function)


def writing_options(function: Decorated) -> Decorated:
    """Declare where the report goes."""
    return _stack(
        option(
            WRITING,
            "--json",
            "json_to",
            metavar="FILE|-",
            help="Write the report as JSON; with - nothing else is on stdout.",
        ),
        option(
            WRITING,
            "--markdown",
            "markdown_to",
            metavar="FILE|-",
            help="Write it as Markdown tables.",
        ),
        option(
            WRITING,
            "--quiet",
            "-q",
            is_flag=True,
            help="Print nothing but errors.",
        ),
        option(
            WRITING,
            "--ascii",
            "ascii_only",
            is_flag=True,
            help="Print plain ASCII.",
        ),
        option(
            WRITING,
            "--config",
            metavar="FILE",
            is_eager=True,
            expose_value=False,
            callback=_read_config,
            help="TOML file of these options; the command line wins.",
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
    context.default_map = {
        by_name[name].name: [value]
        if by_name[name].multiple and not isinstance(value, list)
        else value
        for name, value in values.items()
    }


def option_names(command: click.Command) -> dict[str, click.Option]:
    """Return a command's options by the names that a configuration file uses."""
    never = {"config", "help", "version"}
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


@dataclass(frozen=True)
class Reading:
    """How runs are read.

    Parameters
    ----------
    top_k, keep_self, score_order, rank_from_column, exclude
        The options of the same names.
    accepted : frozenset of str
        Warnings that the user has answered with an option, which ``--strict`` lets pass.
    """

    top_k: int | None
    keep_self: bool
    score_order: Any
    rank_from_column: bool
    exclude: str | None
    accepted: frozenset[str]

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Reading:
        """Pick these settings from all options of a command."""
        names = ("top_k", "keep_self", "score_order", "rank_from_column", "exclude")
        if options["top_k"] is not None and options["top_k"] < 1:
            raise UsageError("--top-k must be at least 1", found=str(options["top_k"]))
        accepted = {"W-SELF-MATCHES"} if was_chosen("keep_self") else set()
        return cls(**{name: options[name] for name in names}, accepted=frozenset(accepted))


def gate_config(options: Mapping[str, Any]) -> GateConfig:
    """Pick the gate's settings from all options of a command."""
    from falsify_adapters.results import GateConfig

    names = ("tau", "alpha", "n_boot", "n_trials", "seed", "permute", "marginal", "decision")
    return GateConfig(**{name: options[name] for name in (*names, "correction")})


def chosen_measures(options: Mapping[str, Any]) -> list[Any]:
    """Return the measures of the options, each once, with the lowest relevant grade set."""
    from falsify_adapters.measures import parse_measure

    measures = [parse_measure(name) for name in options["measures"]]
    min_rel = options["min_rel"]
    if min_rel is not None:
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


__all__ = [
    "READING",
    "Command",
    "Reading",
    "chosen_measures",
    "gate_config",
    "grading_options",
    "option",
    "reading_options",
    "was_chosen",
    "writing_options",
]
