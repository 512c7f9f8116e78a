"""What `mkdocs build` adds to docs/: a page for each command, and documents that are elsewhere in the repository."""

import atexit
import json
import posixpath
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from newsembed.launch.cli import COMMANDS, command_page, overview_page, prepare_libraries

prepare_libraries()

ROOT: Final = Path(__file__).parents[1]
COMMAND_PAGES: Final = "reference/commands"
# Documents outside of docs/, and their place in the site.
ELSEWHERE: Final = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "report.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "LICENSE",
}
SOURCE: Final = {page: source for source, page in ELSEWHERE.items()}
LINK: Final = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^()\s#]+)(#[^()\s]*)?(?=\))")
CODE: Final = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def _package_folder() -> str:
    """A folder in which the package is called newsembed, for the reader of docstrings.

    It has the modules only: the reader would go through all files of the environment in the root.
    """
    folder = tempfile.mkdtemp(prefix="newsembed-docs-")
    atexit.register(shutil.rmtree, folder)  # it follows no links
    package = Path(folder, "newsembed")
    package.mkdir()
    for path in [*ROOT.glob("*.py"), *(init.parent for init in ROOT.glob("*/__init__.py"))]:
        (package / path.name).symlink_to(path)
    return folder


def on_startup(**_: Any) -> None:
    """Puts the package in front of the folder of programs, where one has its name, before mkdocstrings looks there."""
    sys.path.insert(0, _package_folder())


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lists the commands in the navigation."""
    pages = [{name: f"{COMMAND_PAGES}/{name}.md"} for name in COMMANDS]
    (section,) = (entry for entry in config.nav if "Reference" in entry)
    section["Reference"].append({"Commands": [f"{COMMAND_PAGES}/index.md", *pages]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are not in docs/."""
    generated = {page: (ROOT / source).read_text(encoding="utf-8") for source, page in ELSEWHERE.items()}
    generated |= {f"{COMMAND_PAGES}/{name}.md": command_page(name) for name in COMMANDS}
    generated[f"{COMMAND_PAGES}/index.md"] = overview_page()
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        generated[f"notebooks/{path.stem}.md"] = notebook_page(path)
    for path, content in generated.items():
        files.append(File.generated(config, path, content=content))
    return files


def notebook_page(path: Path) -> str:
    """A notebook with its output as Markdown; pictures are part of the page."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f"![output](data:image/png;base64,{''.join(data['image/png']).strip()})")
            elif text := "".join(output.get("text", data.get("text/plain", ""))).strip("\n"):
                parts.append(f"```text\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Follows files to their place in the site."""
    parts = CODE.split(markdown)
    return "".join(part if part.startswith("```") else with_links(part, page.file.src_uri) for part in parts)


def with_links(text: str, page: str) -> str:
    """Markdown whose links are written for the repository, with links of the site."""
    folder = posixpath.dirname(SOURCE.get(page, f"docs/{page}"))

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[1]))
        place = ELSEWHERE.get(target, target.removeprefix("docs/"))
        return posixpath.relpath(place, posixpath.dirname(page) or ".") + (match[2] or "")

    return LINK.sub(link, text)
