"""mkdocs hooks: the repository's files that pages speak of become pages of the site.

README.md is the site's first page. The other pages of the repository's top folder, and any file outside docs/ that a
page links to or names in a code span, stand under repository/: Markdown as it is, everything else as a page that shows
its text. Links keep the form that works in the repository and are rewritten here; one that leads to no file is left as
it is, and --strict refuses it.
"""
import logging
import pathlib
import posixpath
import re

from mkdocs.structure.files import File

LOG = logging.getLogger("mkdocs.site_hooks")
ROOT = pathlib.Path(__file__).resolve().parent.parent
FOREIGN = re.compile(r"<(?:script|img|iframe|source)[^>]* src=\"?https?:[^\"> ]*|<link[^>]* href=\"?https?:[^\"> ]*")
FENCE = re.compile(r"^(```+|~~~+).*?^\1$", re.M | re.S)
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
NAMED = re.compile(r"(?<!\[)`((?:bench|cmake|fuzz|include|src|tests|tools)/[\w./-]+)`")
LANGUAGES = {".h": "cpp", ".cc": "cpp", ".py": "python", ".sh": "bash", ".json": "json", ".jinja": "jinja",
             ".cmake": "cmake", ".service": "ini", ".yaml": "yaml", ".txt": "text", "": "text", ".md": None}
HOME = {"README.md": "index.md"}


def is_shown(path):
    """Whether the repository has a text file `path`."""
    file = ROOT / path
    return file.is_file() and file.suffix in LANGUAGES and file.stat().st_size < 100_000


def site_path(path):
    """Where the site has the repository's file `path`."""
    if path in HOME:
        return HOME[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"repository/{path}" + ("" if path.endswith(".md") else ".md")


def source_of(src_uri):
    """The inverse of site_path()."""
    for path, uri in HOME.items():
        if uri == src_uri:
            return path
    if not src_uri.startswith("repository/"):
        return f"docs/{src_uri}"
    path = src_uri.removeprefix("repository/")
    return path if (ROOT / path).is_file() else path.removesuffix(".md")


def target_of(page, link):
    """The file of the repository that `link` in its file `page` leads to, or None."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    return path if not path.startswith("..") and is_shown(path) else None


def content_of(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    language = LANGUAGES[pathlib.PurePosixPath(path).suffix]
    return f"---\nsearch: {{exclude: true}}\n---\n# {path}\n\n~~~~ {language}\n{text}\n~~~~\n"


def targets_of(page):
    """The files of the repository that a Markdown page links to or names."""
    text = FENCE.sub("", content_of(page))
    linked = (target_of(page, link[2]) for link in LINK.finditer(text))
    return {path for path in [*linked, *NAMED.findall(text)] if path and is_shown(path)}


def on_files(files, config):
    """Adds the pages that are reached, from the top folder and docs/ on."""
    reached = {path.name for path in ROOT.glob("*.md")}
    reached |= {f"docs/{file.src_uri}" for file in files.documentation_pages()}
    waiting = sorted(reached)
    while waiting:
        page = waiting.pop()
        if page.endswith(".md"):
            new = targets_of(page) - reached
            reached |= new
            waiting += sorted(new)
    for path in sorted(reached):
        if not path.startswith("docs/"):
            files.append(File.generated(config, site_path(path), content=content_of(path)))
    return files


def on_page_markdown(markdown, page, **_):
    """Links as the site has them, outside of fenced blocks."""
    here = page.file.src_uri

    def relative(path):
        return posixpath.relpath(site_path(path), posixpath.dirname(here) or ".")

    def link(match):
        target = target_of(source_of(here), match[2])
        return f"{match[1]}{relative(target)}{match[3] or ''}{match[4]}" if target else match[0]

    def named(match):
        return f"[{match[0]}]({relative(match[1])})" if is_shown(match[1]) else match[0]

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [NAMED.sub(named, LINK.sub(link, markdown[end:fence.start()])), fence[0]]
        end = fence.end()
    return "".join([*parts, NAMED.sub(named, LINK.sub(link, markdown[end:]))])


def on_post_page(output, page, **_):
    """A page that makes its reader's browser ask another server is a warning, and so an error."""
    for foreign in FOREIGN.findall(output):
        LOG.warning("%s: comes from elsewhere: %s", page.file.src_uri, foreign)
    return output
