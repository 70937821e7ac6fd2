# SPDX-License-Identifier: Apache-2.0
"""Run programs of examples/python, as their first lines say or in forks of one process."""

import ast
import builtins
import functools
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import types
from unittest import mock

ROOT = os.environ["ROOT"]
PATH = os.pathsep.join([os.path.join(os.environ["BUILD"], "bin"), os.path.dirname(sys.executable), os.environ["PATH"]])


def source(name):
    with open(os.path.join(ROOT, "examples", "python", f"{name}.py")) as f:
        return f.read()


def commands(name):
    """Those which the example begins with."""
    found = re.findall("^    (.+)$", ast.get_docstring(ast.parse(source(name))), re.M)
    assert found and f"examples/python/{name}.py" in found[-1], found
    return found


def as_written(name, only_last=False):
    """Give the commands as they stand, here; returns what they print."""
    for entry in ("README.md", "CONTRIBUTING.md", "docs", "examples", "format"):
        if not os.path.lexists(entry):
            os.symlink(os.path.join(ROOT, entry), entry)
    script = "\n".join(commands(name)[-1:] if only_last else commands(name))
    done = subprocess.run(["sh", "-e", "-c", script], capture_output=True, text=True, env=os.environ | {"PATH": PATH})
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def module(name, *changes):
    """The example, to be called; with changes, pairs of an old text and a new one, a broken one."""
    text = source(name)
    for old, new in changes:
        assert text.count(old) == 1, f"{name}.py has {text.count(old)} times {old!r}"
        text = text.replace(old, new)
    made = types.ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), made.__dict__)
    return made


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def dying_print(begin):
    """Nothing runs after a line that begins like this."""
    say = builtins.print

    def print_and_die(*args, **options):
        say(*args, **options)
        if str(args[0]).startswith(begin):
            die()

    return mock.patch.object(builtins, "print", print_and_die)


class Process:
    """A function in a fork, with what it prints in a file."""

    def __init__(self, function, *patches):
        self.file = tempfile.TemporaryFile("w+")
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid:
            return
        os.dup2(self.file.fileno(), 1)
        os.dup2(self.file.fileno(), 2)
        status = 1
        try:
            for patch in patches:
                patch.start()
            function()
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def ended(self, status):
        """How: an exit status, or minus a signal."""
        self.status = os.waitstatus_to_exitcode(status)
        self.file.seek(0)
        self.output = self.file.read()
        self.file.close()


def run(main, command, *patches):
    """main() with the options of a command, in a fork: what it printed, and how it ended."""
    process = Process(functools.partial(main, shlex.split(command)), *patches)
    process.ended(os.waitpid(process.pid, 0)[1])
    return process.output, process.status


def steps(output):
    """(epoch, step) to the rest of its line."""
    return {(int(e), int(s)): rest for e, s, rest in re.findall(r"^epoch (\d+) step (\d+) (.+)$", output, re.M)}


def number(name, output):
    """What stands behind a name."""
    return float(re.search(rf"{name} (\d+\.\d+)", output)[1])
