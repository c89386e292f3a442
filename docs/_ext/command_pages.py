"""Writes a page for each subcommand of `hdiforest` from its parser, before pages are read."""

import argparse
from pathlib import Path

from hdiforest._cli.arguments import command_parser

FOLDER = "command"


def pages():
    """Return the Markdown page of each subcommand by its name."""
    (subcommands,) = (
        action
        for action in command_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return {name: _page(name, parser) for name, parser in subcommands.choices.items()}


def _page(name, parser):
    lines = [f"# hdiforest {name}", parser.description, _usage(parser)]
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.dest != "help"]
        if actions:
            lines += [f"## {group.title[:1].upper()}{group.title[1:]}", *map(_argument, actions)]
    return "\n\n".join(lines) + "\n"


def _usage(parser):
    return f"```text\n{parser.format_usage().strip()}\n```"


def _argument(action):
    value = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.metavar
    if action.nargs == "+":
        value = f"{value} [{value} ...]"
    named = " ".join(filter(None, (", ".join(action.option_strings), value)))
    required = " Required." if action.required and action.option_strings else ""
    text = (action.help or "").replace("%%", "%").replace("*", r"\*")
    text = f"{text[:1].upper()}{text[1:]}".rstrip(".")
    return f"`{named}`\n: {text or 'Model file'}.{required}"


def _write(app):
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    for name, page in pages().items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != page:
            path.write_text(page, encoding="utf-8")


def setup(app):
    """Register with Sphinx."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True}
