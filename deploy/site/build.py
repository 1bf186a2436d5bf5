"""Builds the documentation as a site that can be read offline, and checks it.

    build.py MDBOOK BINARY [OUT]      OUT is target/site by default

Gathers the pages of docs, the README and a few others, writes the reference (see reference.py) and lists, and turns links to
files of the repository into links to copies. Fails on a page that SUMMARY.md leaves out, on any warning of mdBook, on a link
or anchor that leads nowhere, and on anything that a page would load from elsewhere. Links to other sites are not followed.
"""

import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import reference  # noqa: E402

# Pages outside docs, and where they are in the site.
OUTSIDE = {"README.md": "README.md", "SECURITY.md": "SECURITY.md", "loadtests/README.md": "loadtests.md"}
# Folders that get a page which lists them: what it says, and the folder.
LISTS = {
    "decisions.md": ("Decisions", "Why things are the way they are. A page says what was to be decided, what was chosen and what was given up."),
    "toolsets.md": ("Toolsets", "Every tool with its arguments, effects and errors. The tests hold these pages to the code."),
    "alerts.md": ("Alerts", "A page for each alert: what it means, what to look at, what to do. [Operations](operations.md#alerts) says when each fires."),
}
IMAGES = (".png", ".svg", ".jpg", ".webp")
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.M | re.S)


def pages():
    """Every page by its path in the repository, with its path in the site."""
    found = dict(OUTSIDE)
    for path in sorted((ROOT / "docs").rglob("*.md")):
        found[path.relative_to(ROOT).as_posix()] = path.relative_to(ROOT / "docs").as_posix()
    return found


def title(text):
    return re.search(r"^# (.*)$", text, re.M)[1].strip()


class Site:
    """The folder that mdBook reads."""

    def __init__(self, src, binary):
        self.src, self.binary, self.pages = src, binary, pages()
        self.copied, self.problems = set(), []

    def gather(self):
        for source, target in self.pages.items():
            text = (ROOT / source).read_text()
            self.write(target, self.linked(text, source, target))
        for target, (name, says) in LISTS.items():
            entries = self.listed(target)
            self.write(target, "\n".join([f"# {name}", "", says, "", *(f"- [{each}]({path})" for each, path in entries), ""]))
        for target, text in reference.pages(self.binary).items():
            self.write(target, text)
        self.write("SUMMARY.md", self.summary())

    def write(self, target, text):
        path = self.src / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def listed(self, target):
        folder = target.removesuffix(".md")
        found = [(title((ROOT / source).read_text()), path) for source, path in self.pages.items() if path.startswith(f"{folder}/")]
        return sorted(found, key=lambda entry: entry[1])

    def summary(self):
        """SUMMARY.md with the pages of the lists below them."""
        lines = []
        for line in (HERE / "SUMMARY.md").read_text().splitlines():
            lines.append(line)
            target = re.search(r"\]\((.*)\)", line)
            if target and target[1] in LISTS:
                lines += [f"  - [{name}]({path})" for name, path in self.listed(target[1])]
        text = "\n".join(lines) + "\n"
        for path in self.pages.values():
            if f"]({path})" not in text:
                self.problems.append(f"deploy/site/SUMMARY.md does not have {path}")
        return text

    def linked(self, text, source, target):
        """The text with its links made for the site; what is code stays as it is."""
        parts = CODE.split(text)
        return "".join(part if at % 2 else LINK.sub(lambda link: self.link(link, source, target), part) for at, part in enumerate(parts))

    def link(self, link, source, target):
        address, _, anchor = link[2].partition("#")
        if not address or re.match(r"[a-z]+:", address):
            return link[0]
        path = os.path.normpath(os.path.join(os.path.dirname(source), urllib.parse.unquote(address)))
        to = self.pages.get(path) or self.folder(path) or self.copy(path)
        if to is None:
            self.problems.append(f"{source}: there is no {link[2]}")
            return link[0]
        relative = os.path.relpath(to, os.path.dirname(target) or ".")
        return f"{link[1]}{relative}{'#' + anchor if anchor else ''}{link[3]}"

    def folder(self, path):
        """A folder of pages is the page that lists it."""
        name = f"{os.path.basename(path)}.md"
        return name if path.startswith("docs/") and name in LISTS else None

    def copy(self, path):
        """A file of the repository, beside the pages. A folder is a list of its files."""
        full = ROOT / path
        if not full.exists():
            return None
        if full.suffix in IMAGES:
            to = f"files/{path}"
            (self.src / to).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(full, self.src / to)
            return to
        # Browsers show text and would download anything else.
        to = f"files/{path}.txt"
        if to not in self.copied:
            self.copied.add(to)
            content = full.read_text() if full.is_file() else "".join(f"{path}/{each.name}\n" for each in sorted(full.iterdir()))
            self.write(to, content)
        return to


class Page(html.parser.HTMLParser):
    """What a page of the site has, loads and links to."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids.update(value for key, value in attributes if key in ("id", "name") and value)
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("href"):
            self.loads.append(given["href"])
        elif given.get("src"):
            self.loads.append(given["src"])


def check_links(out):
    """Every link inside the site leads to a page and an anchor that are there; nothing is loaded from elsewhere."""
    problems, elsewhere = [], set()
    files = {path.relative_to(out).as_posix(): Page(path.read_text()) for path in out.rglob("*.html")}
    for name, page in files.items():
        # The whole book on one page repeats what was checked on the others.
        if name in ("print.html", "toc.html"):
            continue
        problems += [f"{name} loads {address} from elsewhere" for address in page.loads if re.match(r"(https?:)?//", address)]
        for address in page.links + page.loads:
            if re.match(r"[a-z]+:", address):
                elsewhere.add(address)
                continue
            path, _, anchor = address.partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(name), urllib.parse.unquote(path))) if path else name
            if not (out / to).exists():
                problems.append(f"{name}: {address} leads nowhere")
            elif anchor and to in files and urllib.parse.unquote(anchor) not in files[to].ids:
                problems.append(f"{name}: {address} has no such anchor")
    for sheet in out.rglob("*.css"):
        problems += [f"{sheet.name} loads {address}" for address in re.findall(r"url\(['\"]?((?:https?:)?//[^)'\"]*)", sheet.read_text())]
    return problems, elsewhere, len(files)


def llms(site, out):
    """llms.txt: what there is to read, for models; and each page as plain Markdown beside its HTML."""
    lines = ["# Quartermaster", "", "> A multi-tenant tool service for hosted AI agents: tools over MCP and REST, every change approved by a person, every call in an audit log.", ""]
    section = "Pages"
    for line in (site.src / "SUMMARY.md").read_text().splitlines()[1:]:
        if line.startswith("# "):
            lines += ["", f"## {line[2:]}", ""]
        elif match := re.match(r"\s*(?:- )?\[(.*)\]\((.*)\)", line):
            if section:
                lines, section = [*lines, f"## {section}", ""], None
            text = (site.src / match[2]).read_text()
            lines.append(f"- [{match[1]}]({match[2]}): {first_sentence(text)}")
            target = out / match[2]
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(site.src / match[2], target)
    (out / "llms.txt").write_text(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n")


def first_sentence(text):
    """The first line of prose under the title, without its links."""
    for line in text.split("\n", 1)[1].splitlines():
        if re.match(r"[A-Z`*]", line):
            return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line)
    return title(text)


def main():
    mdbook, binary = sys.argv[1], sys.argv[2]
    out = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else ROOT / "target/site").resolve()
    with tempfile.TemporaryDirectory(prefix="quartermaster-site.") as folder:
        book = pathlib.Path(folder)
        shutil.copy(HERE / "book.toml", book)
        site = Site(book / "src", binary)
        site.gather()
        shutil.rmtree(out, ignore_errors=True)
        done = subprocess.run([mdbook, "build", "--dest-dir", str(out), str(book)], capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        if done.returncode != 0 or re.search(r"\b(WARN|ERROR)\b", said):
            site.problems.append(f"mdBook is not content:\n{said}")
        llms(site, out)
    problems, elsewhere, count = check_links(out)
    for problem in site.problems + problems:
        print(f"  FAILED  {problem}")
    if site.problems or problems:
        sys.exit(f"{len(site.problems + problems)} problems")
    hosts = sorted({urllib.parse.urlparse(each).netloc for each in elsewhere})
    print(f"  ok      {count} pages, no warning, no link that leads nowhere, nothing loaded from elsewhere: {out}/index.html")
    print(f"  NOT CHECKED: links to other sites: {', '.join(filter(None, hosts))}")


main()
