"""What the documentation's site has beyond its pages, and what it promises.

The READMEs of the packages under `plugins/` become pages, and so do the notebooks, with what comes
of their code when the site is built. Other links that lead out of `docs/` stay words, as the site
has nothing to show there. Formulas become MathML, which browsers draw without a
script. Nothing is loaded from the network: the build fails if a page would.
"""

import re
import tempfile
from html import unescape
from pathlib import Path
from typing import Any

import nbformat
from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, InclusionLevel
from nbclient import NotebookClient

PLUGINS = Path(__file__).parents[1] / "plugins"
NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"
OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\((?:\.\./)+([^)#\s]+)(?:#[^)]*)?\)")
"""A link that leads out of the folder: its words, and where to."""
NOTEBOOK = re.compile(r"\]\((notebooks/\w+)\.ipynb\)")
FORMULA = re.compile(
    r"""<(span|div)\ class="arithmatex">\s*\\([(\[])(.*?)\\[)\]]\s*</\1>""", re.VERBOSE | re.DOTALL
)
"""A formula in a line, or one on its own, as Markdown's `arithmatex` leaves it."""
BARS = re.compile(r"<mo>(&#x0007C;|&#x02016;)</mo>")
"""Bars around a number: browsers take them for signs between two."""
LOADS = re.compile(
    r"""<(?:script|img|iframe|source|audio|video|embed)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'\s>]+
    |<link\b(?=[^>]*\brel=["']?(?:stylesheet|preconnect|preload|icon|dns-prefetch))
      [^>]*\bhref=["']?(?:https?:)?//[^"'\s>]+
    |(?:@import\s+|url\()\s*["']?(?:https?:)?//[^"')\s]+""",
    re.VERBOSE,
)
"""What a browser would fetch from elsewhere by itself. Links that a reader may click are none."""


def on_files(files: Any, config: Any) -> Any:
    """Add the plugins' READMEs, and the notebooks."""
    for readme in sorted(PLUGINS.glob("fpbench-*/README.md")):
        name = f"plugin-{readme.parent.name}.md"
        text = readme.read_text(encoding="utf-8")
        added = File.generated(config, name, content=text, inclusion=InclusionLevel.NOT_IN_NAV)
        files.append(added)
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        name = f"notebooks/{notebook.stem}.md"
        files.append(File.generated(config, name, content=run_notebook(notebook)))
    return files


def run_notebook(path: Path) -> str:
    """Run a notebook in an empty folder; its cells and their results as Markdown."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as empty:
        NotebookClient(notebook, resources={"metadata": {"path": empty}}).execute()
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts.append(f"```python\n{cell.source}\n```")
            parts += [show_result(output) for output in cell.outputs]
    here = f"[this notebook]({path.name})"
    return "\n\n".join([*parts, f"Everything above is {here}, run when this site was built.", ""])


def show_result(output: Any) -> str:
    """What a cell printed or returned: HTML if it has some, else text."""
    data = output.get("data", {})
    if "text/html" in data:
        html = re.sub(r"<style.*?</style>", "", data["text/html"], flags=re.DOTALL)
        html = html.replace('<table border="1" class="dataframe">', "<table>")  # as other tables
        lines = filter(None, map(str.strip, html.splitlines()))  # Markdown would end it at a gap
        return "\n".join(['<div class="notebook-result">', *lines, "</div>"])
    text = output.text if output.output_type == "stream" else data["text/plain"]
    return f"```text\n{text.rstrip()}\n```"


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Lead links that go out of the folder to a page that is made of what is there, if one is.

    Links to notebooks lead to their pages.
    """
    if page.file.src_uri.startswith("notebooks/"):
        return markdown

    def target(link: re.Match[str]) -> str:
        words, path = link.groups()
        name = path.rpartition("docs/")[2] if path.endswith(".md") else ""
        if readme := re.fullmatch(r"plugins/([\w-]+)(?:/README\.md)?/?", path):
            name = f"plugin-{readme[1]}.md"
        return f"[{words}]({name})" if name and files.get_file_from_path(name) else words

    return NOTEBOOK.sub(r"](\1.md)", OUTSIDE.sub(target, markdown))


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Make MathML of formulas; one that cannot be made fails the build."""

    def drawn(formula: re.Match[str]) -> str:
        display = "block" if formula[2] == "[" else "inline"
        mathml = convert(unescape(formula[3].strip()), display=display)
        if unknown := re.search(r"\\\w+", mathml):
            raise PluginError(f"{page.file.src_path}: {unknown[0]} in {formula[3]!r}")
        return BARS.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', mathml)

    return FORMULA.sub(drawn, html)


def on_post_build(config: Any) -> None:
    """Fail if a page or a style sheet would have something loaded from the network."""
    site = Path(config.site_dir)
    remote = [
        f"{path.relative_to(site)}: {match[0][:120]}"
        for path in sorted(site.rglob("*"))
        if path.suffix in {".html", ".css"}
        for match in LOADS.finditer(path.read_text(encoding="utf-8"))
    ]
    if remote:
        raise PluginError("loaded from the network:\n" + "\n".join(remote))
