"""A hook of mkdocs: the page of the command line, from the commands themselves."""

from __future__ import annotations

from typing import Any


def page() -> str:
    """Every command with its help, in the order of `covey --help`."""
    import click

    from covey.desk.cli import main

    parts = ["# The command line", "", "Made from the commands themselves: `covey COMMAND --help` says the same.", ""]

    def add(command: click.Command, names: tuple[str, ...], parent: click.Context | None) -> None:
        context = click.Context(command, info_name=names[-1], parent=parent)
        parts.extend([f"## {' '.join(names)}", "", "```text", command.get_help(context), "```", ""])
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                own = command.get_command(context, name)
                if own is not None and not own.hidden:
                    add(own, (*names, name), context)

    add(main, ("covey",), None)
    return "\n".join(parts)


def on_files(files: Any, config: Any) -> Any:
    """Add reference/commands.md."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "reference/commands.md", content=page()))
    return files


if __name__ == "__main__":
    print(page())
