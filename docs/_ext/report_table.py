"""The directive `report-table`: a table of figures, read from a file that a benchmark wrote."""

from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from reports import markdown, paragraphs_of, selected, table_of
from sphinx.util.docutils import SphinxDirective


def _names(text):
    return [name.strip() for name in text.split(";")]


class ReportTable(SphinxDirective):
    """Show a table of a report, or some of its columns and rows; names are parted by semicolons."""

    required_arguments = 1  # the file, from the folder above docs/
    final_argument_whitespace = False
    option_spec: ClassVar = {
        "section": directives.unchanged_required,
        "columns": _names,
        "rows": _names,
        "only": _names,
        "medians": directives.flag,
    }

    def run(self):
        """Return the table."""
        path = Path(self.env.srcdir).parent / self.arguments[0]
        self.env.note_dependency(str(path))
        options = self.options
        try:
            table = table_of(paragraphs_of(path, options.get("section")))
            found = selected(
                *table,
                options.get("columns"),
                options.get("rows"),
                options.get("only"),
                "medians" in options,
            )
        except (OSError, ValueError) as error:
            raise self.error(f"{self.arguments[0]}: {error}") from error
        container = nodes.container()
        lines = markdown(*found)
        self.state.nested_parse(StringList(lines, str(path)), self.content_offset, container)
        return container.children


def setup(app):
    """Register with Sphinx."""
    app.add_directive("report-table", ReportTable)
    return {"parallel_read_safe": True}
