# SPDX-License-Identifier: Apache-2.0
"""pages.py WORK HAVE PAGE... - run the blocks of the documents

A page is a story: its blocks are run in order, in one fresh folder.  Three backticks fence a block,
and it says its language.  `sh`, `c` and `python` are run, `text` is shown only.  A comment on the
line above a block says more of it:

    <!-- not run: REASON -->   it is printed with its reason, and only its syntax is checked;
                               at most nine blocks of all pages may say so
    <!-- needs: torch -->      it uses what an earlier block made that needs torch
    <!-- file: NAME -->        it is a file of any language, which a later block uses
    <!-- with: NAME -->        it is a part of a C program: tests/docs/with/NAME.c is the rest, and
                               includes it as "block.c"
    <!-- prints -->            the block before prints these lines; an ellipsis stands for anything

Blocks of a page share the folder, exported variables, the current folder, and the variables of
Python.  The folder is a copy of the tree; build/ is the build.  Three files of tests/docs/with may
help a page, where PAGE is its path with dots for slashes.  PAGE.sh is run before its first block,
PAGE_before.py before its first Python, and PAGE_after.py behind its last block.

HAVE lists what blocks may need, separated by commas.  A block that needs something else is named,
and left out.  With --only NEED just those pages are run that have a block with that need.
"""

import ast
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import traceback
from dataclasses import dataclass, field

RUN = ("sh", "c", "python")
LEFT_OUT_MAX = 9
MARK = re.compile(r"<!-- (not run|needs|file|with|prints)(?:: (\S.*?))? -->\Z")
FRAMEWORKS = ("lightning", "transformers", "accelerate", "torchdata", "grain", "torchtitan")
NEEDS = {
    "torch": re.compile(r"\btorch(run)?\b"),
    "jax": re.compile(r"\bjax\b"),
    **{name: re.compile(rf"^(import|from) {name}\b", re.M) for name in FRAMEWORKS},
    "slurm": re.compile(r"\b(sbatch|srun)\b"),
    "mpi": re.compile(r"\bmpirun\b"),
    "ray": re.compile(r"-m libshard\.ray\b"),
    "ssh": re.compile(r"^\s*ssh \S", re.M),
    "pip": re.compile(r"^\s*(\S*/)?(python3? -m )?pip3? install\b", re.M),
}
WITH = "tests/docs/with"


@dataclass
class Block:
    page: str
    line: int  # of its first line of code
    language: str
    code: str = ""
    marks: dict = field(default_factory=dict)

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def needs(self):
        if "file" in self.marks:
            return set()
        given = {n for n in self.marks.get("needs", "").split(", ") if n}
        return given | {n for n, pattern in NEEDS.items() if self.language in RUN and pattern.search(self.code)}


# ---- reading a page ----


def parse(page, text):
    """Blocks of a page, and what is wrong with them."""
    blocks, errors, inside, marks, above, in_list = [], [], None, {}, "", False
    for number, line in enumerate(text.split("\n"), 1):
        if inside:
            if line == "```":
                blocks.append(inside)
                inside = None
            else:
                inside.code += line + "\n"
        elif line.lstrip().startswith(("```", "~~~")):
            inside, wrong = opening(page, number, line, marks)
            errors += wrong
            marks = {}
        elif line.startswith("<!--"):
            found = MARK.match(line)
            if found and (found[2] or found[1] == "prints"):
                marks[found[1]] = found[2] or ""
            elif re.match(r"<!-- *(not|needs|file|with|prints|run)\b", line):
                errors.append(f"{page}:{number}: no such comment: {line}")
        else:
            if marks:
                errors.append(f"{page}:{number}: the comment above belongs to no block")
            marks = {}
            in_list = bool(re.match(r"\s*([-*]|\d+\.) ", line)) or in_list and (not line or line.startswith(" "))
            if line.startswith("    ") and not above and not in_list:
                errors.append(f"{page}:{number}: code that is indented has no language; fence it")
        above = line.strip()
    if inside:
        errors.append(f"{inside.place}: this block does not end")
    return blocks, errors


def opening(page, number, line, marks):
    block = Block(page, number + 1, line[3:], marks=marks)
    errors = []
    if not re.fullmatch(r"```[a-z]*", line):
        errors.append(f"{page}:{number}: a block begins with three backticks at the start of a line, and a language")
    elif not block.language:
        errors.append(f"{page}:{number}: a block without a language; it is one of {', '.join(RUN)}, text")
    elif block.language not in (*RUN, "text"):
        errors.append(f"{page}:{number}: a block in {block.language}, which is none of {', '.join(RUN)}, text")
    if "prints" in marks and block.language != "text":
        errors.append(f"{page}:{number}: what a block prints is text")
    for need in block.marks.get("needs", "").split(", "):
        if need and need not in NEEDS:
            errors.append(f"{page}:{number}: needs {need}, which is none of {', '.join(NEEDS)}")
    return block, errors


# ---- running a page: in a process of its own, in its folder ----


class Page:
    def __init__(self, key):
        self.key, self.scope, self.said = key, {"__name__": "page"}, ""
        self.own = os.path.abspath(".page")
        os.makedirs(self.own, exist_ok=True)
        self.root = os.getcwd()
        self.prepared = False

    def sh(self, script, name):
        """Run it as a reader would type it; what it exports, and where it goes, stays."""
        state = os.path.join(self.own, "state")
        end = f"env -0 PAGE_PWD=\"$PWD\" >'{state}'"
        done = subprocess.run(
            ["sh", "-euc", f"{script}\n{end}", name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self.said = done.stdout
        if done.returncode:
            raise SystemExit(f"exit status {done.returncode}")
        with open(state) as f:
            found = dict(entry.split("=", 1) for entry in f.read().split("\0") if "=" in entry)
        os.chdir(found.pop("PAGE_PWD"))
        os.environ.clear()
        os.environ.update(found)

    def c(self, block):
        """Compile it, and run it if it is a program or its harness makes one of it."""
        name = block.marks.get("with")
        source, program = os.path.join(self.own, "block.c"), os.path.join(self.own, "block")
        with open(source, "w") as f:
            f.write(f'#line {block.line} "{block.page}"\n{block.code}')
        harness = os.path.join(self.root, WITH, f"{name}.c") if name else source
        if not os.path.exists(harness):
            raise SystemExit(f"there is no {WITH}/{name}.c")
        with open(harness) as f:
            text = f.read()
        if not name and "main(" not in text:
            raise SystemExit(f"a part of a program needs <!-- with: NAME -->, and {WITH}/NAME.c around it")
        flags = re.search(r"CFLAGS: ([^*\n]*)", text)
        strict = "-Wall -Wextra -Werror " + ("-Wno-unused " if name else "") + (flags[1] if flags else "")
        whole = re.search(r"\b(main|TEST_MAIN)\(", text)
        made = f"-o {program}" if whole else f"-c -o {program}.o"
        libraries = "$(pkg-config --cflags --libs libshard)"
        self.sh(f"${{CC:-cc}} {strict} -I {self.own} {harness} {made} {libraries}", block.place)
        if whole and "file" not in block.marks:
            self.sh(program, block.place)

    def python(self, code, place, line=1):
        page = place.split(":")[0]
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * (line - 1) + code, page, "exec"), self.scope)
        finally:
            self.said = out.getvalue()

    def prints(self, block):
        """Each line that a page shows was printed, in this order."""
        said = iter(self.said.split("\n"))
        for shown in block.code.rstrip("\n").split("\n"):
            wanted = ".*".join(re.escape(part) for part in shown.rstrip().split("…"))
            if not any(re.fullmatch(wanted, line.rstrip()) for line in said):
                raise SystemExit(f"this line was not printed, or not here: {shown}")

    def run(self, block):
        if "file" in block.marks:
            with open(block.marks["file"], "w") as f:
                f.write(block.code)
            if block.language == "python":
                compile(block.code, block.page, "exec")
            elif block.language == "sh":
                self.sh(f"sh -n {block.marks['file']}", block.place)
            elif block.language == "c":
                self.c(block)
        elif "prints" in block.marks:
            self.prints(block)
        elif block.language == "sh":
            self.sh(block.code, block.place)
        elif block.language == "c":
            self.c(block)
        elif block.language == "python":
            if not self.prepared:
                self.extra("_before.py")
            self.prepared = True
            self.python(block.code, block.place, block.line)

    def extra(self, name):
        path = os.path.join(self.root, WITH, f"{self.key}{name}")
        if os.path.exists(path):
            with open(path) as f:
                self.python(f.read(), path)


def run_page(path, have):
    """The child: one page, from its first block to its last."""
    key = key_of(path)
    with open(path) as f:
        blocks, _ = parse(path, f.read())
    page, place, ready = Page(key), path, os.environ.pop("PAGE_READY", None)
    try:
        place = before = os.path.join(WITH, f"{key}.sh")
        if os.path.exists(before) and not ready:
            with open(before) as f:
                page.sh(f.read(), before)
            os.chdir(page.root)
            # Exported variables may matter to the interpreter itself, as the linker's path does.
            os.environ["PAGE_READY"] = "1"
            os.execv(sys.executable, [sys.executable, "-W", "error", *sys.argv])
        skipped = False
        for block in blocks:
            place = block.place
            if "not run" in block.marks or not block.needs <= have:
                skipped = True
            elif block.language != "text" or "file" in block.marks or ("prints" in block.marks and not skipped):
                page.run(block)
                skipped = False
        place = f"{WITH}/{key}_after.py"
        if all(block.needs <= have for block in blocks):
            page.extra("_after.py")
    except BaseException as e:
        sys.stdout.write("".join(f"    {line}\n" for line in page.said.rstrip("\n").split("\n") if line))
        if not isinstance(e, SystemExit):
            sys.stdout.write(traceback.format_exc())
        sys.exit(f"{place}: {e if isinstance(e, SystemExit) else type(e).__name__}")


# ---- all pages ----


def key_of(path):
    return path.removesuffix(".md").replace("/", ".")


def syntax(block):
    """What is wrong with the syntax of a block that is not run."""
    if block.language == "python":
        try:
            ast.parse(block.code)
        except SyntaxError as e:
            return [f"{block.place}: {e}"]
    if block.language == "sh":
        done = subprocess.run(["sh", "-n"], input=block.code, text=True, capture_output=True)
        return [f"{block.place}: {done.stderr}"] if done.returncode else []
    return []


def start(path, work, have):
    """A page in a copy of the tree, by a process of its own.  Returns whether it went well."""
    folder = os.path.join(work, key_of(path))
    shutil.copytree(".", folder, symlinks=True)
    # By another name of the folder, `make` in a block would build all of it again, beside other tests.
    build = os.path.join(folder, "build")
    os.symlink(os.environ["BUILD"], build)
    home = os.path.join(folder, ".home")
    os.mkdir(home)
    program = [sys.executable, "-W", "error", os.path.join(os.getcwd(), "tests/docs/pages.py")]
    command = [*program, "--page", path, ",".join(sorted(have))]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "HOME": home, "BUILD": build}, stdin=subprocess.DEVNULL)
    shutil.rmtree(folder, ignore_errors=True)
    return done.returncode == 0


def main(arguments):
    if arguments[:1] == ["--page"]:
        return run_page(arguments[1], set(arguments[2].split(",")) - {""})
    only = arguments[1] if arguments[:1] == ["--only"] else None
    work, have, *paths = arguments[2 if only else 0 :]
    have = set(have.split(",")) - {""}
    errors, pages, not_run, left_out = [], {}, [], []
    for path in paths:
        with open(path) as f:
            blocks, wrong = parse(path, f.read())
        errors += wrong
        for block in blocks:
            if "not run" in block.marks:
                not_run.append(f"{block.place}: not run: {block.marks['not run']}")
                errors += syntax(block)
        told = [b for b in blocks if b.language in RUN and "not run" not in b.marks]
        if told:
            pages[path] = told
    if len(not_run) > LEFT_OUT_MAX:
        errors += not_run + [f"{len(not_run)} blocks are not run; at most {LEFT_OUT_MAX} may be"]
    if errors:
        sys.exit("\n".join(errors))
    ran = pages_run = 0
    for path, blocks in pages.items():
        if only and not any(only in b.needs for b in blocks):
            continue
        if not start(path, work, have):
            errors.append(path)
            continue
        missing = [b for b in blocks if not b.needs <= have]
        left_out += [f"{b.place}: needs {', '.join(sorted(b.needs - have))}" for b in missing]
        ran += len(blocks) - len(missing)
        pages_run += len(missing) < len(blocks)
    if errors:
        sys.exit("failed: " + ", ".join(errors))
    print("\n".join(left_out + ([] if only else not_run)))
    there = ", ".join(sorted(have)) or "this"
    print(f"{ran} blocks of {pages_run} pages; {len(left_out)} need more than {there}, {len(not_run)} are never run")


if __name__ == "__main__":
    main(sys.argv[1:])
