# SPDX-License-Identifier: Apache-2.0
"""make_site.py BUILD SITE - the documents as a site, in a folder of SITE that is called like the version

All documents of the tree are pages, in the folders where they lie, so that their links stay as they
are.  What they link to besides, such as a program in examples/, becomes a page, too.  The manuals that
the build printed give a page for each verb of a command and for each header of C.  mkdocstrings makes
the reference of Python from docstrings.

Anything wrong ends the build: a broken link or anchor, or a page that would load something from
another host.
"""

import ast
import html.parser
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import messages  # noqa: E402

# The navigation: a page has the title of its first line.  A document of docs/ that stands nowhere
# comes at the end of the guides.
NAV = {
    "Tutorials": "tutorials/photographs tutorials/tokens tutorials/boxes tutorials/ranks",
    "Guides": "PACKING TRAINING PYTHON SILENT GPU TRANSFORM SIZING RELIABILITY MIGRATING FRAMEWORKS",
    "Project": "../CONTRIBUTING ARCHITECTURE GLOSSARY ../SECURITY ../NEWS ../tests/gauntlet/README"
    " ../tests/peers_tests/README ../python/README",
    "Figures": "../bench/RESULTS ../bench/README ../bench/peers/README ../bench/results/README",
    "Format": "../format/SHARD ../format/ORDER ../format/CHANGES",
}
# Tutorials that the site has as notebooks, too; a test runs them.
NOTEBOOKS = ("docs/tutorials/photographs.md", "docs/tutorials/tokens.md")
# Names of libshard in Python, by page.  A name that stands nowhere comes on the last of these pages.
PYTHON = {
    "Datasets": "open Dataset Selection concat Concat zip Zip Preview Schema Field Stats ChannelStats VerifyReport",
    "Loaders": "Loader Batch Array Transform Mixture mix balanced PADDED SUBSTITUTED MASKED",
    "Writing": "pack Writer",
    "Errors": "Error",
    "Other names": "version_details",
}
LANGUAGES = {".c": "c", ".h": "c", ".cu": "c", ".py": "python", ".sh": "sh"}


# ---- documents ----


def document(text, links=lambda target: target, titles=lambda target: target):
    """A document, in the dialect of Python-Markdown: it wants four spaces before what is nested, and a fence
    has a title.  The comments tell tests how blocks are run.  A link that shows the name of a file shows the
    title of its page, because readers of the site do not see files."""
    out, title, fenced = [], "", False
    for line in text.split("\n"):
        if line.startswith("```"):
            fenced = not fenced
            line += f' title="{title}"' if fenced and title else ""
            title = ""
        elif fenced:
            pass
        elif line.startswith("<!--"):
            named = re.match(r"<!-- (?:file: (\S+)|(prints)) -->", line)
            title = (named[1] or "output") if named else title
            continue
        else:
            line = re.sub(r"^ {2,3}(?=([-*]|\d+\.) )", "    ", line)
            line = re.sub(r"\[[\w./-]+\.md\](?=\(([^)#:]+\.md)[)#])", lambda m: f"[{titles(m[1])}]", line)
            line = re.sub(r"(?<=\]\()([^)#:]+)(?=[)#])", lambda m: links(m[1]), line)
        if line.startswith("|") and not fenced:  # a range stays on one line of its cell
            line = re.sub(r"\(([\d.,]+) to ([\d.,]+)\)", r"(\1&nbsp;to&nbsp;\2)", line)
        out.append(line)
    text = "\n".join(out).lstrip("\n")
    return re.sub(r"^```python[^\n]*\n(?:(?!```).*\n)*```\n\n```c\b[^\n]*\n(?:(?!```).*\n)*```$", tabs, text, flags=re.M)


def tabs(found):
    """The same in Python and in C, of which a reader sees one."""
    blocks = zip(("Python", "C"), found[0].split("```\n\n```c"), ("```", ""), ("", "```c"), strict=True)
    return "\n\n".join(f'=== "{name}"\n\n' + textwrap.indent(head + code + end, "    ") for name, code, end, head in blocks)


def notebook(text):
    """A tutorial as a notebook: blocks of sh and Python are cells, and all else is between them."""
    cells = []
    for part in re.split(r"^(```(?:sh|python)\n.*?^```$)", document(text), flags=re.M | re.S):
        code = re.match(r"```(sh|python)\n(.*)\n```\Z", part, re.S)
        source = ("%%sh -e\n" if code[1] == "sh" else "") + code[2] if code else part.strip()
        cell = {"cell_type": "code", "execution_count": None, "outputs": []} if code else {"cell_type": "markdown"}
        if source:
            cells.append({**cell, "id": f"cell{len(cells)}", "metadata": {}, "source": source})
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def news(text):
    """NEWS: a version at the left edge, facts below it, tables further right."""
    out, above = ["# What changed", ""], ""
    for line in text.split("\n"):
        deeper = line.startswith("    ")
        if re.fullmatch(r"\d+\.\d+\.\d+", line):
            out.append(f"## {line}")
        elif line.startswith("  ") and not deeper:
            out.append("- " + plain(line.strip()))
        elif deeper and above:  # of the fact above it
            out.append("  " + plain(line.strip()))
        elif deeper and not out[-1].startswith("    "):
            out += ["<!-- a table -->", "", line]
        else:
            out.append(line if deeper else plain(line))
        above = line and (not deeper or above)
    return "\n".join(out)


class Pages:
    """The folder of pages that MkDocs reads."""

    def __init__(self, root, folder):
        self.root, self.folder, self.there = root, folder, set()
        shutil.rmtree(folder, ignore_errors=True)

    def write(self, path, text):
        where = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(where), exist_ok=True)
        with open(where, "w") as f:
            f.write(text.rstrip("\n") + "\n")
        self.there.add(path)
        return path

    def read(self, path):
        with open(os.path.join(self.root, path)) as f:
            return f.read()

    def document(self, path):
        """A document, and what it links to."""

        def links(target):
            file = os.path.normpath(os.path.join(os.path.dirname(path), target))
            if file.endswith(".md") or not os.path.exists(os.path.join(self.root, file)):
                return target  # if it is not there, MkDocs says so
            return target.rstrip("/") + self.linked(file)

        def titles(target):
            file = os.path.join(os.path.dirname(path), target)
            there = os.path.exists(os.path.join(self.root, file))
            return re.search(r"^# (.*)", self.read(file), re.M)[1] if there else target

        text = document(self.read(path), links, titles)
        if path in NOTEBOOKS:
            name = self.write(path.replace(".md", ".ipynb"), notebook(self.read(path)))
            text = re.sub(r"^(# .*\n)", rf"\1\n[This page as a notebook]({os.path.basename(name)})\n", text, count=1)
        if path == "README.md":
            return self.write("index.md", "---\nhide: [navigation]\n---\n" + text)
        if not re.search("^# ", text, re.M):  # a table that a program wrote, to which another page links
            text = f"---\nsearch: {{exclude: true}}\n---\n# {path.removesuffix('.md')}\n\n{text}"
        return self.write(path, text)

    def linked(self, file):
        """Put a file or a folder beside the pages that link to it.  Returns what its page adds to its name."""
        whole, ending = os.path.join(self.root, file), os.path.splitext(file)[1]
        if ending in (".png", ".svg"):
            os.makedirs(os.path.join(self.folder, os.path.dirname(file)), exist_ok=True)
            shutil.copy(whole, os.path.join(self.folder, file))
            return ""
        if os.path.isdir(whole):
            names = [n for n in sorted(os.listdir(whole)) if os.path.isfile(os.path.join(whole, n))]
            lines = [f"- [{n}]({n}{self.linked(os.path.join(file, n))})\n" for n in names]
            self.write(f"{file}/index.md", f"# {file}\n\n{''.join(lines)}")
            return "/index.md"
        if file != "NEWS":
            head = "---\nsearch: {boost: 0.5}\n---\n"  # what explains it comes first
            self.write(f"{file}.md", f"{head}# {file}\n\n````{LANGUAGES.get(ending, 'text')}\n{self.read(file)}````\n")
        return ".md"


# ---- manuals ----


def plain(text):
    """Plain text as Markdown.  Text between backticks is code in both."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([\\*_<>\[\]|#])", r"\\\1", p) for p in parts)


def marked(text):
    """A line of a manual, as Markdown: bold is what one types."""
    text = text.replace(r"\fR\fB", "")
    parts = re.split(r"\\f([BI])(.*?)\\fR", text)
    out = text_of(parts[0])
    for font, inner, after in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        inner = unescaped(inner)
        out += (f"`{inner}`" if font == "B" else f"*{plain(inner)}*") + text_of(after)
    return out


def text_of(text):
    """Text of a manual, in which options are code, so that no line is broken in them."""
    return plain(re.sub(r"(?<![\w-])--[a-z][a-z0-9-]*", r"`\g<0>`", unescaped(text)))


def unescaped(text):
    text = re.sub(r"\\f[BIR]", "", text)
    for roff, meant in ((r"\&", ""), (r"\-", "-"), (r"\(aq", "'"), (r"\(bu", "*"), (r"\e", "\\")):
        text = text.replace(roff, meant)
    return text


def manual(text):
    """The sections of a man page, by its macros: a list of [heading, lines of Markdown]."""
    text = text.replace(".fi\n.br\n.nf\n", "")  # of a table, each line stands alone
    lines, sections, deep = iter(text.rstrip("\n").split("\n") + [".end"]), [], 0

    def put(*those):
        sections[-1][1].extend(("    " * deep + line).rstrip() for line in those)

    line = next(lines)
    while line != ".end":
        macro, _, rest = line.partition(" ")
        following = next(lines)
        if macro in (".SH", ".SS"):
            deep, options = 0, False
            sections.append([unescaped(rest), []])
        elif macro == ".RS" and following == ".nf":
            put("", "## Examples")
        elif macro == ".RS":
            deep += 1
        elif macro == ".RE":
            deep -= deep > 0
        elif macro in (".nf", ".EX") or line.startswith("\t"):
            shown = [line] if line.startswith("\t") else []
            while following.startswith("\t") or (not shown or shown[0] != line) and following not in (".fi", ".EE"):
                shown.append("" if following == ".PP" else following)
                following = next(lines)
            language = "text" if shown[0].startswith("  ") else "sh" if macro == ".nf" else "c"
            put("", f"```{language}", *(unescaped(s) for s in shown), "```", "")
        elif macro == ".TP":
            if not options and not deep:
                put("", "## Options")
            options = True
            put("", f"`{unescaped(following)}`")
            following = next(lines)
            begin = ":   "
            while not following.startswith("."):
                put(begin + marked(following))
                begin, following = "    ", next(lines)
        elif macro == ".IP":
            put("", "- " + marked(following))
            following = next(lines)
        elif macro == ".PP":
            put("")
        elif re.fullmatch(r"\\fB[^\\]*\\fR", line) and following in (".br", ".TP"):
            put("", ("### " if options else "## ") + unescaped(line), "")
        elif macro == ".BR":
            put(unescaped(rest))
        elif not line.startswith("."):
            put(marked(line))
        line = following
    return sections


def commands(pages, tool, text):
    """A page for each verb of a command, and one for what they have in common.  Returns the navigation."""
    first, rest, verbs = [], [], []
    for heading, lines in manual(text):
        name = re.match(rf"({tool}(?: [a-z-]+)+) ", heading)
        if name:
            path = f"commands/{tool}/{name[1].removeprefix(tool + ' ').replace(' ', '-')}.md"
            pages.write(path, "\n".join([f"# {name[1]}", "", "```text", heading, "```", "", *lines]))
            verbs.append((name[1], path, next(line for line in lines if line)))
        elif heading == "NAME":
            first = [f"# {tool}", "", lines[0].split(" - ", 1)[1].capitalize() + ".", ""]
        elif heading not in ("SYNOPSIS", "VERBS", "SEE ALSO"):
            rest += ["", f"## {heading.capitalize()}", "", *(line for line in lines if not line.startswith("## "))]
    table = [f"| [{name}]({os.path.basename(path)}) | {what} |" for name, path, what in verbs]
    path = pages.write(f"commands/{tool}/index.md", "\n".join([*first, "| verb | what it does |", "|---|---|", *table, *rest]))
    return [{"Overview": path}, *({name.removeprefix(tool + " "): path} for name, path, _ in verbs)]


DECLARED = re.compile(r"^#define (SHARD_\w+)|^(?:struct|enum) (shard_\w+) \{|\b(shard_\w+)\((?!\*)|\(\*(shard_\w+)\)", re.M)


def headers(pages, manuals):
    """A page for each header, and one of all names that they declare.  Returns the navigation."""
    made = {name: manual(text) for name, text in manuals.items()}
    where = {}  # name -> page#name
    for header, sections in made.items():
        for _, lines in sections:
            code = False
            for i, line in enumerate(lines):
                code = line == "```c" or code and line != "```"
                if line != "```c":
                    continue
                block = "\n".join(lines[i + 1 : lines.index("```", i)])
                names = ["".join(found) for found in DECLARED.findall(block)]
                fresh = [n for n in dict.fromkeys(names) if n not in where]
                where |= {n: f"{header}.md#{n}" for n in fresh}
                lines[i] = "".join(f'<a id="{n}"></a>' for n in fresh) + "\n\n```c"

    def linked(line, header):
        """Names in text are code, and links."""

        def link(found):
            name = found[1].replace("\\", "")
            target = where.get(name.removesuffix("()"))
            code = f"`{name}`"
            return f"[{code}]({target})" if target else code

        return re.sub(r"(?<![`\w])((?:shard|SHARD)(?:\\_[A-Za-z0-9]+)+(?:\(\))?)(?![\w.*\\])", link, line)

    for header, sections in made.items():
        name, what = sections[0][1][0].split(" - ", 1)
        out = [f"# {name.replace(chr(92), '')}", "", what[0].upper() + what[1:] + ".", ""]
        for heading, lines in sections[1:-1]:
            code = False
            out += ["", f"## {heading.capitalize()}", ""]
            for line in lines:
                code = line.endswith("```c") or line.startswith("```") and line != "```" or code and line != "```"
                out.append(line if code else linked(line, header))
        pages.write(f"reference/c/{header}.md", "\n".join(out))
    names = [(h, ", ".join(f"[`{n}`]({where[n]})" for n in sorted(where) if where[n].startswith(f"{h}.md#"))) for h in made]
    text = "# Names in C\n" + "".join(f"\n## {h.replace('_', chr(92) + '_')}\n\n{those}\n" for h, those in names)
    return [{"All names": pages.write("reference/c/index.md", text)}, *({h: f"reference/c/{h}.md"} for h in made)]


# ---- Python ----


def public(package):
    """The names that libshard has."""
    with open(os.path.join(package, "__init__.py")) as f:
        tree = ast.parse(f.read())
    assigned = {ast.unparse(s.targets[0]): s.value for s in tree.body if isinstance(s, ast.Assign)}
    return ast.literal_eval(assigned["__all__"])


def python(pages, package):
    """Pages of names, whose text mkdocstrings takes from docstrings.  Returns the navigation."""
    every = public(package)
    told = {name: words.split() for name, words in PYTHON.items()}
    told["Errors"] += [n for n in every if n.endswith("Error") and n != "Error"]
    placed = sum(told.values(), [])
    told["Other names"] += [n for n in every if n not in placed]
    nav = []
    for title, names in told.items():
        lines = [f"# {title}", "", *(f"::: libshard.{n}\n" for n in names)]
        nav.append({title: pages.write(f"reference/python/{title.split()[0].lower()}.md", "\n".join(lines))})
    for file in sorted(os.listdir(package)):
        module = f"libshard.{file.removesuffix('.py')}"
        if file.endswith(".py") and not file.startswith("_"):
            text = f"# {module}\n\n::: {module}\n    options: {{show_root_heading: false}}\n"
            nav.append({module: pages.write(f"reference/python/{module}.md", text)})
    return nav


def docstrings(text, names):
    """A module whose documentation mkdocstrings understands: `#:` begins a docstring, and a role of Sphinx is code,
    and a link if it is about a public name."""

    def role(found):
        code = f"``{found[1]}``"
        return f"[{code}][libshard.{found[1]}]" if found[1].split(".")[0] in names else code

    text = re.sub(r'^( *)(\w+(?::|,| =).*?) +#: (.*)$', r'\1\2\n\1"""\3"""', text, flags=re.M)
    return re.sub(r":(?:class|meth|func|attr):`(?:libshard\.)?([\w.]+)`", role, text)


def stub(text, core):
    """The stub of the module in C, with the docstrings that the module itself has."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            kind = getattr(core, node.name, None)
            for part in [node, *(n for n in node.body if isinstance(n, ast.FunctionDef))]:
                said = getattr(kind if part is node else getattr(kind, part.name, None), "__doc__", None)
                if said and not part.name.startswith("_"):
                    part.body.insert(0, ast.Expr(ast.Constant(said)))
    return ast.unparse(tree)


# ---- the site ----


class Loads(html.parser.HTMLParser):
    """What a page loads by itself from another host.  A plain link is not loaded."""

    def __init__(self):
        super().__init__()
        self.found, self.style = [], False

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.style = tag == "style"
        plain_link = tag == "a" or tag == "link" and values.get("rel") in ("canonical", "next", "prev")
        for name, value in attrs:
            if value and not plain_link and name in ("src", "href", "xlink:href", "srcset", "poster", "data", "action"):
                self.found += [value] * bool(re.search(r"(^|[ ,=])(\w+:)?//[\w.-]+", value))
            if value and name == "style":
                self.found += elsewhere(value)

    def handle_data(self, data):
        if self.style:
            self.found += elsewhere(data)


def elsewhere(css):
    return re.findall(r"""(?:url\(\s*|@import\s+)['"]?((?:\w+:)?//[^'")\s]+)""", css)


def loads(folder):
    """(file, address) of all that pages and style sheets of a folder load from another host."""
    found = []
    for where, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            path = os.path.join(where, name)
            if name.endswith((".html", ".css", ".svg")):
                with open(path) as f:
                    text = f.read()
                parser = Loads()
                if name.endswith(".css"):
                    parser.found = elsewhere(text)
                else:
                    parser.feed(text)
                found += [(os.path.relpath(path, folder), address) for address in parser.found]
    return found


def unbroken(folder):
    """Short code is not broken at the end of a line, where its hyphens and blanks would allow it."""
    for where, _, names in os.walk(folder):
        for path in (os.path.join(where, n) for n in names if n.endswith(".html")):
            with open(path) as f:
                text = f.read()
            with open(path, "w") as f:
                f.write(re.sub(r"<code>(?=[^<]{1,28}</code>)", '<code class="short">', text))


def versions(site):
    """What the list of versions shows: the folders that are there, the newest first."""
    found = [v for v in os.listdir(site) if re.fullmatch(r"\d+\.\d+\.\d+", v)]
    found.sort(key=lambda v: [int(n) for n in v.split(".")], reverse=True)
    with open(os.path.join(site, "versions.json"), "w") as f:
        json.dump([{"version": v, "title": v, "aliases": ["newest"] if v == found[0] else []} for v in found], f)
    with open(os.path.join(site, "index.html"), "w") as f:
        f.write(f'<!doctype html><meta charset="utf-8"><title>libshard</title>'
                f'<meta http-equiv="refresh" content="0; url={found[0]}/index.html">'
                f'<a href="{found[0]}/index.html">libshard {found[0]}</a>\n')


def staged(root, build, folder):
    """All pages.  Returns the navigation."""
    pages = Pages(root, folder)
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if listed.returncode:  # a tree without git
        listed = subprocess.run(["find", ".", "-name", "*.md", "-not", "-path", "./build/*"], capture_output=True, text=True)
    found = [os.path.normpath(path) for path in listed.stdout.split()]
    documents = sorted(p for p in found if not p.startswith("docs/man/") and os.path.exists(p))
    for path in documents:
        pages.document(path)
    pages.write("NEWS.md", news(pages.read("NEWS")))
    for name in ("site.css", "site.js"):
        shutil.copy(os.path.join(root, "docs/site", name), folder)

    manuals = {}
    for part, names in (("man1", ("shardpack", "shardcat")), ("man3", sorted(os.listdir("include")))):
        for name in names:
            with open(os.path.join(build, "share/man", part, f"{name}.{part[-1]}")) as f:
                manuals.setdefault(part, {})[name] = f.read()
    nav = {title: [os.path.normpath(f"docs/{name}.md") for name in names.split()] for title, names in NAV.items()}
    placed = sum(nav.values(), [])
    nav["Guides"] += [p for p in documents if re.fullmatch(r"docs/.*\.md", p) and p not in placed]
    return [
        {"Home": "index.md"},
        {"Tutorials": nav["Tutorials"]},
        {"Guides": nav["Guides"]},
        {"Commands": [{tool: commands(pages, tool, text)} for tool, text in manuals["man1"].items()]},
        {"Reference": [
            {"Python": python(pages, os.path.join(root, "python/libshard"))},
            {"Messages": pages.write("reference/messages.md", messages.page(root))},
            {"C": headers(pages, manuals["man3"])},
            {"Format": nav["Format"]},
        ]},
        {"Figures": nav["Figures"]},
        {"Project": nav["Project"]},
    ]


def main(build, site):
    root = os.getcwd()
    with open("include/shard.h") as f:
        version = ".".join(re.findall(r"^#define SHARD_VERSION_\w+\s+(\d+)", f.read(), re.M))
    work = os.path.abspath(os.path.join(build, "site-work"))
    nav = staged(root, build, os.path.join(work, "pages"))
    modules = os.path.join(work, "python")
    shutil.rmtree(modules, ignore_errors=True)
    os.makedirs(os.path.join(modules, "libshard"))
    sys.path.insert(0, os.path.join(os.path.abspath(build), "python"))
    core = importlib.import_module("libshard._core")
    for name in os.listdir("python/libshard"):
        if name.endswith((".py", ".pyi")):
            with open(os.path.join("python/libshard", name)) as f:
                text = f.read()
            with open(os.path.join(modules, "libshard", name), "w") as f:
                f.write(docstrings(stub(text, core) if name == "_core.pyi" else text, public("python/libshard")))
    html = os.path.join(os.path.abspath(site), version)
    config = {
        "INHERIT": os.path.abspath("docs/site/mkdocs.yml"),
        "docs_dir": "pages",
        "site_dir": html,
        "nav": nav,
        "plugins": {"mkdocstrings": {"handlers": {"python": {"paths": [modules]}}}},
    }
    with open(os.path.join(work, "mkdocs.yml"), "w") as f:
        json.dump(config, f)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", f.name]
    done = subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, stderr=subprocess.PIPE, text=True)
    if done.returncode:  # not --quiet, with which --strict does not see what is wrong
        sys.exit(done.stderr)
    os.remove(os.path.join(html, "404.html"))  # it looks for style sheets at the root of a server
    scripts = os.path.join(html, "assets/javascripts")
    with open(os.path.join(scripts, next(n for n in os.listdir(scripts) if re.fullmatch(r"bundle\..*\.js", n)))) as f:
        if "type:2,data:" not in f.read():
            sys.exit("docs/site/site.js: a query of this Material is not a message of type 2; look how it is sent")
    unbroken(html)
    found = loads(html)
    if found:
        sys.exit("\n".join(f"{path}: loads {address} from another host" for path, address in found))
    versions(site)
    files = [os.path.join(w, n) for w, _, names in os.walk(html) for n in names]
    count = sum(f.endswith(".html") for f in files)
    print(f"{html}/index.html: {count} pages, {sum(map(os.path.getsize, files)) / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
