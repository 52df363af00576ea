#!/usr/bin/env python3
"""pages_test.py SOURCE: in every Markdown page of the repository, links lead to files and headings that are there,
and so do the paths that are named in code spans.
"""
import pathlib
import re
import sys

FENCE = re.compile(r"^(```+|~~~+).*?^\1$", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"`((?:bench|cmake|docs|examples|fuzz|include|models|src|tests|tools)/[\w./-]+)`")


def anchors(text):
    """The headings' ids, as GitHub and mkdocs make them."""
    titles = re.findall(r"^#+ +(.*?) *$", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def faults_of(page, root):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
        if link.startswith(("https:", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if link.startswith("/") or not target.is_file() or root not in target.parents:
            yield f"the link {link} leads nowhere"
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            yield f"the link {link} leads to no heading"
    for path in PATH.findall(text):
        if not (root / path).exists():
            yield f"there is no {path}"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    # Builds, and what is hidden: environments of Python, and the like.
    pages = [page for page in sorted(root.rglob("*.md")) if not re.match(r"build$|\.", page.relative_to(root).parts[0])]
    if len(pages) < 20:
        sys.exit(f"{root}: only {len(pages)} pages")
    faults = [f"{page.relative_to(root)}: {fault}" for page in pages for fault in faults_of(page, root)]
    print("\n".join(faults) or f"{len(pages)} pages")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
