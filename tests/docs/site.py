# SPDX-License-Identifier: Apache-2.0
"""site.py BUILD WORK - the pages that `make site` gives to MkDocs are complete, and what pages load is found

MkDocs itself is not needed here: it looks at links and anchors when the site is built.
"""

import importlib.util
import os
import re
import subprocess
import sys

build, work = sys.argv[1:]
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("make_site", "docs/site/make_site.py")
site = importlib.util.module_from_spec(spec)
spec.loader.exec_module(site)


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def read(path):
    with open(path) as f:
        return f.read()


# ---- what a page loads ----

LOADS = {  # of a page: does it load something from another host?
    '<script src="https://cdn.example/x.js"></script>': True,
    '<script src="//cdn.example/x.js"></script>': True,
    '<script src="assets/x.js"></script>': False,
    '<link rel="stylesheet" href="https://fonts.example/css?family=Roboto">': True,
    '<link rel="preconnect" href="https://fonts.example" crossorigin>': True,
    '<link rel="icon" href="../assets/favicon.png">': False,
    '<link rel="canonical" href="https://docs.example/page.html">': False,
    '<img src="http://example/x.png" alt="">': True,
    '<img srcset="x.png 1x, https://example/x.png 2x">': True,
    '<img src="data:image/png;base64,AA//AA">': False,
    '<video poster="https://example/x.png"></video>': True,
    '<iframe src="https://example"></iframe>': True,
    '<p style="background: url(https://example/x.png)">': True,
    "<style>@import '//example/x.css';</style>": True,
    "<style>p {background: url(x.png)}</style>": False,
    '<p>See <a href="https://example">this</a> and url(https://example).</p>': False,
    '<svg xmlns="http://www.w3.org/2000/svg"><use href="https://example/x.svg#a"/></svg>': True,
    '<svg xmlns="http://www.w3.org/2000/svg"><use href="#a"/></svg>': False,
    '<svg xmlns="http://www.w3.org/2000/svg"><image xlink:href="https://example/x.png"/></svg>': True,
}
for number, (page, wanted) in enumerate(LOADS.items()):
    folder = os.path.join(work, f"loads{number}")
    write(os.path.join(folder, "page.html"), f"<!doctype html><html><body>{page}</body></html>")
    assert bool(site.loads(folder)) == wanted, (page, site.loads(folder))
for css, wanted in {"p {background: url('https://example/x')}": True, "@import 'https://example/x';": True,
                    "p {background: url(\"../x.png\")} /* https://example */": False}.items():
    folder = os.path.join(work, f"css{wanted}{len(css)}")
    write(os.path.join(folder, "a/page.css"), css)
    assert bool(site.loads(folder)) == wanted, css

# ---- documents ----

assert site.document("# A\n\n- b\n  - c\n1. d\n   - e\n") == "# A\n\n- b\n    - c\n1. d\n    - e\n"
assert site.document("<!-- file: x.py -->\n```python\n  - y\n```\n") == '```python title="x.py"\n  - y\n```\n'
assert site.document("<!-- prints -->\n```text\n<!-- z -->\n```\n```sh\n```\n") == (
    '```text title="output"\n<!-- z -->\n```\n```sh\n```\n')
assert site.document("```python\nx\n```\n\n<!-- with: y -->\n```c\ny;\n```\nz\n") == (
    '=== "Python"\n\n    ```python\n    x\n    ```\n\n=== "C"\n\n    ```c\n    y;\n    ```\nz\n')
assert site.document("[A.md](../A.md#b), [d](A.md)\n```text\n[A.md](A.md)\n```\n", titles=str.lower) == (
    "[../a.md](../A.md#b), [d](A.md)\n```text\n[A.md](A.md)\n```\n")
assert site.document("| 1.2 (1.0 to 1.4) (a to b) |\n") == "| 1.2 (1.0&nbsp;to&nbsp;1.4) (a to b) |\n"
assert "===" not in site.document("```python\nx\n```\n\nthen\n\n```c\ny;\n```\n")

folder = os.path.join(work, "short")
write(os.path.join(folder, "a/b.html"), f"<p><code>--crop 224</code> <code>{'x ' * 20}</code></p>")
site.unbroken(folder)
assert read(os.path.join(folder, "a/b.html")) == (
    f'<p><code class="short">--crop 224</code> <code>{"x " * 20}</code></p>')

# ---- docstrings ----

assert site.docstrings("x: int  #: of :class:`Dataset`\n", ["Dataset"]) == (
    'x: int\n"""of [``Dataset``][libshard.Dataset]"""\n')
assert site.docstrings(":meth:`Dataset.key`, :class:`libshard.Loader`, :meth:`key`", ["Dataset", "Loader"]) == (
    "[``Dataset.key``][libshard.Dataset.key], [``Loader``][libshard.Loader], ``key``")

# ---- all pages ----

for tool in ("shardpack", "shardcat"):
    write(os.path.join(work, f"build/share/man/man1/{tool}.1"), output(f"{build}/bin/{tool}", "--print-man"))
for header in os.listdir("include"):
    write(os.path.join(work, f"build/share/man/man3/{header}.3"),
          output("awk", "-v", "version=0", "-f", "docs/header_man.awk", f"include/{header}"))
pages = os.path.join(work, "pages")
nav = site.staged(os.getcwd(), os.path.join(work, "build"), pages)


def paths(part):
    if isinstance(part, str):
        return [part]
    return [path for inner in (part.values() if isinstance(part, dict) else part) for path in paths(inner)]


shown = paths(nav)
assert len(shown) == len(set(shown)), "a page is in the navigation twice"
missing = [path for path in shown if not os.path.exists(os.path.join(pages, path))]
assert not missing, f"the navigation names {missing}"

# Of a manual, each option, item and example is there, and no macro is left.
KINDS = {".TP": r" *:   \S", ".IP": r" *- "}


def lost(manual, text):
    """Kinds of things that the manual has, and the pages have another number of."""
    counts = {macro: (len(re.findall(rf"^\{macro}\b", manual, re.M)), len(re.findall(rf"^{kind}", text, re.M)))
              for macro, kind in KINDS.items()}
    return [f"{macro}: {wanted}, not {found}" for macro, (wanted, found) in counts.items()
            if found != wanted]


for tool in ("shardpack", "shardcat"):
    folder = os.path.join(pages, "commands", tool)
    manual = read(os.path.join(work, f"build/share/man/man1/{tool}.1"))
    text = "".join(read(os.path.join(folder, name)) for name in sorted(os.listdir(folder)))
    assert not lost(manual, text), (tool, lost(manual, text))
    assert lost(manual, text.replace(":   ", "    ", 1)), "a lost option went unnoticed"
    left = re.findall(r"^\.[A-Za-z]{2}\b.*|\\f[BIR].*|\\-.*", text, re.M)
    assert not left, (tool, left[:5])
    verbs = re.findall(rf'^\.SS {tool} ([a-z\\ -]+?) (?=[A-Z\[])', manual, re.M)
    for verb in verbs:
        name = verb.replace("\\", "").replace(" ", "-")
        assert f"({name}.md)" in text and os.path.exists(os.path.join(folder, f"{name}.md")), verb
    assert len(verbs) > 10

# Each function that the library exports has a place in the reference.
exported = re.findall(r"^\s+(shard_\w+);", read("libshard/libshard.map"), re.M)
folder = os.path.join(pages, "reference/c")
text = "".join(read(os.path.join(folder, name)) for name in os.listdir(folder))


def nowhere(text):
    return [name for name in exported if f'<a id="{name}"></a>' not in text]


assert len(exported) > 90 and not nowhere(text), nowhere(text)
assert nowhere(text.replace('<a id="shard_loader_next"></a>', "")) == ["shard_loader_next"]

# ---- messages ----

# What the commands say of these is in the index.  tests/python/misuse.py does the same for Python.
index = site.messages.messages(os.getcwd())
find = site.messages.finder(index)
page = read(os.path.join(pages, "reference/messages.md"))
WRONG = """shardpack images nothing -o x|shardpack images include -o x|shardpack images . -o x --resize 0|shardpack
shardpack images . -o x --crop 9 --resize 8|shardpack images . -o x --field a:kind=b|shardpack images . -o x --split 0.8
shardpack tokens nothing.bin -o x --seq-len 4|shardpack tokens README.md -o x --seq-len 0|shardpack raw . -o x
shardpack build nothing|shardpack merge a b -o x|shardpack images . -o x --colour|shardpack pictures|shardpack append a
shardcat info nothing|shardcat verify README.md|shardcat get nothing 0|shardcat info|shardcat show|shardcat stats a b
shardcat order nothing --world 0|shardcat verify nothing --sample x|shardcat doctor a b|shardpack images . --out""".replace("\n", "|")
said = []
for line in WRONG.split("|"):
    command, *words = line.split()
    done = subprocess.run([f"{build}/bin/{command}", *words], capture_output=True, text=True, cwd=os.getcwd())
    assert done.returncode in (1, 2, 3, 4, 5), (line, done.returncode)
    said += [text.split(": ", 1)[1] for text in done.stderr.splitlines() if text.startswith(command + ": ")
             and "no size was given" not in text]  # a note
lost = [text for text in said if not find(text) and not re.search(r": (No such file|Not a dir|Is a dir)\w* ?\w*( \w+)*$", text)]
assert not lost and len(said) > 15, lost
assert not find("a sentence that no command says"), "anything is found"
for text in ("b.tfrecord: is not a regular file", "record 3 at byte 90: the CRC of its length is wrong: the file is damaged",
             "column 'z' is a pickle, which can run any code when it is read; leave it out with --without z",
             "records without an image are left out"):
    assert index.get(find(text)) in ("input", "warning") and len(find(text)) > 20, (text, find(text))  # of libshard.convert
assert all(find(text) in page for text in said if find(text)), "the page lacks a message of the index"
assert len(index) > 1500 and all(f"\n## {title}\n" in page for title in ("ArgumentError", "Bad input", "UserWarning"))

facts = len(re.findall(r"^  \S", read("NEWS"), re.M))
assert len(re.findall(r"^- ", read(os.path.join(pages, "NEWS.md")), re.M)) == facts
print(f"{len(shown)} pages in the navigation, {len(exported)} functions, {len(LOADS) + 3} pages that load or do not")
