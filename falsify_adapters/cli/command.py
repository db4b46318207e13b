"""What all commands share: exit status, one-line errors, help in sections.

Exit status: 2 if a requested input was refused or the usage is wrong, else 1 if any FAIL, else 3
if any UNDER-NS or NOT CERTIFIED, else 0; 4 for an internal error; 130 when interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from falsify_adapters.errors import FalsifyError
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.report.text import printable

REFUSED = 2
INTERNAL = 4
INTERRUPTED = 130

#: Exit status of each verdict, the gravest first.
BY_VERDICT = {"FAIL": 1, "UNDER-NS": 3, "NOT CERTIFIED": 3, "PASS": 0}

EXIT_STATUS_HELP = (
    "Exit status: 0 all PASS, 1 any FAIL, 3 any UNDER-NS, 2 an input refused or wrong usage,"
    " 4 internal error. Controls do not count."
)


def exit_status(outcome: Outcome) -> int:
    """Return the exit status that an outcome stands for.

    Examples
    --------
    >>> exit_status(Outcome())
    0
    """
    if outcome.errors:
        return REFUSED
    verdicts = {report.verdict for report in outcome.reports if report.role == "run"}
    return next((status for verdict, status in BY_VERDICT.items() if verdict in verdicts), 0)


def complain(text: str, command: str | None = None) -> None:
    """Write one line to standard error, after the command's name."""
    context = click.get_current_context(silent=True)
    name = command or (context.find_root().info_name if context else None) or "falsify-adapters"
    write(sys.stderr, " ".join(printable(f"{name}: {text}", keep="\n").split()) + "\n")


def write(stream: Any, text: str | bytes) -> None:
    """Write all of `text`, whatever the stream's encoding; a reader that left is no error."""
    try:
        if isinstance(text, bytes):
            stream.flush()
            stream.buffer.write(text)
        else:
            encoding = getattr(stream, "encoding", None) or "utf-8"
            stream.write(text.encode(encoding, errors="backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        # Python flushes once more at exit, and would complain then
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def exit_code_of(call: Callable[[], Any], name: str) -> int:
    """Run a command; turn whatever it raises into one line and an exit status."""

    def say(text: str) -> None:
        complain(text, name)

    try:
        status = call()
    except click.Abort:
        say("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f"; see {context.command_path} --help" if context else ""
        say(f"error: {error.format_message().rstrip('.')}{hint}")
        return REFUSED
    except FalsifyError as error:
        say(f"error: {error}")
        return REFUSED
    except OSError as error:  # a name that is too long, a folder that may not be read
        place = str(error.filename or "")
        shown = place if len(place) <= 80 else f"{place[:77]}..."
        say(f"error: cannot use {shown or 'a file'}; found: {error.strerror or error}")
        return REFUSED
    except MemoryError as error:
        say(f"error: there is not enough memory; found: {error}")
        return REFUSED
    except Exception as error:
        if os.environ.get("FALSIFY_DEBUG"):
            traceback.print_exc()
        say(
            f"internal error: {type(error).__name__}: {error}; please report it, with the"
            " traceback that FALSIFY_DEBUG=1 prints"
        )
        return INTERNAL
    return status if isinstance(status, int) else 0


class _ExitRules(click.Command):
    """Exit status and errors after this project's rules, instead of click's."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command and leave the process with its exit status."""
        base = super().main

        def call() -> Any:
            return base(args, prog_name, complete_var, standalone_mode=False, **extra)

        if not standalone_mode:
            return call()
        sys.exit(exit_code_of(call, self.name or "falsify-adapters"))


class SectionOption(click.Option):
    """An option that names the section of the help text in which it stands."""

    def __init__(self, *args: Any, section: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class Command(_ExitRules):
    """A command whose help lists the options in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                section = getattr(parameter, "section", "Other")
                sections.setdefault(section, []).append(record)
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl(records)


class LazyGroup(_ExitRules, click.Group):
    """A group whose commands are imported when they are called.

    Parameters
    ----------
    lazy : iterable of str
        Names of commands; command ``x-y`` is the object ``main`` of the module
        ``falsify_adapters.cli.x_y``.
    """

    def __init__(self, *args: Any, lazy: Iterable[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = tuple(lazy)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted([*super().list_commands(ctx), *self.lazy])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        from importlib import import_module

        module = import_module(f"falsify_adapters.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.main
        return command
