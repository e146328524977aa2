"""Hooks of the documentation site: pages that live beside `docs` join it, links to them lead to
their copies, and links to sources stay as text. Language models get all pages as two text files.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

TOP = Path(__file__).parents[2]
BESIDE = (
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md",
    "CHANGELOG.md",
    "ROADMAP.md",
    "agent/README.md",
    "bench/BUDGETS.md",
    "bench/RESULTS.md",
)
COPIED = ("openapi.json",)
_PAGES: list[Any] = []
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Fill the decisions of the navigation by their files."""
    decisions = sorted(path.name for path in (TOP / "docs" / "adr").glob("*.md"))
    for part in config.nav:
        for pages in part.values():
            for place, page in enumerate(pages):
                if isinstance(page, dict) and "Decisions" in page:
                    pages[place] = {"Decisions": [f"adr/{name}" for name in decisions]}
    return config


def on_files(files: Files, config: Any) -> Files:
    for name in BESIDE:
        if (TOP / name).exists():
            text = (TOP / name).read_text("utf-8")
            files.append(File.generated(config, f"project/{name}", content=text))
    for name in COPIED:
        files.append(File.generated(config, name, abs_src_path=str(TOP / name)))
    return files


def on_nav(nav: Any, config: Any, files: Files) -> Any:
    """Keep the pages in the order of the navigation."""
    _PAGES[:] = nav.pages
    return nav


def on_post_build(config: Any) -> None:
    """Write llms.txt, a list of pages, and llms-full.txt, their texts (llmstxt.org)."""
    site = Path(config.site_dir)
    head = f"# {config.site_name}\n\n> {config.site_description}\n"
    lines = [f"- [{page.title}]({page.url})" for page in _PAGES]
    (site / "llms.txt").write_text(f"{head}\n## Pages\n\n" + "\n".join(lines) + "\n", "utf-8")
    texts = [f"{page.markdown.strip()}\n" for page in _PAGES]
    (site / "llms-full.txt").write_text("\n".join([head, *texts]), "utf-8")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links from where the page is in the repository to where the target is in the site."""
    here = PurePosixPath(page.file.src_uri)
    is_beside = here.parts[0] == "project"
    source = PurePosixPath(*here.parts[1:]) if is_beside else PurePosixPath("docs", here)

    def led(found: re.Match[str]) -> str:
        image, words, target, anchor = found.groups()
        if re.match(r"[a-z]+:", target) or target.startswith("/"):
            return found[0]
        place = _normal(source.parent / target)
        if place.startswith("docs/"):
            there = place.removeprefix("docs/")
        elif place in BESIDE:
            there = f"project/{place}"
        elif place in COPIED:
            there = place
        else:
            # A source file is no page of the site.
            return f"`{words.strip('`')}`" if (TOP / place).exists() else found[0]
        up = "../" * (len(here.parts) - 1)
        return f"{image}[{words}]({up}{there}{anchor or ''})"

    return _LINK.sub(led, markdown)


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
