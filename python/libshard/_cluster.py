# SPDX-License-Identifier: Apache-2.0
"""Packing on many machines: what the programs for Ray, Dask and submitit share.

A plan is divided into tasks, each for one part of the shards: ``shardpack build DIR --part k/n``.
The scheduler decides where a task runs, and starts it again elsewhere if its machine dies.  Parts
need no claims: the scheduler knows whose they are, and the claim of a dead machine would only hold
up the task that comes in its place.  A part that runs twice does no harm, since a shard has the
same bytes in whichever process makes it, and appears under its name when it is complete.

Functions of this file are sent to other machines by value.  So those machines need shardpack and
Python, but not this package.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import json
import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Protocol

from ._errors import shown

# Exit codes of shardpack.
DONE, USAGE, IO, UNSUPPORTED, MISMATCH, STOPPED, INTERRUPTED = 0, 2, 3, 4, 5, 75, 130

# Options of `shardpack build` that each task gets.  --part, --jobs and --quiet are set here.  The
# rest is for one process: claims, signals, comparisons and reports.
PASSED = {
    "source": ("SRC", "folder of the inputs, if it has moved [from the plan]"),
    "trust-names": (None, "ignore source times"),
    "read-back": ("yes|no", "verify what was written [yes]"),
    "max-bad": ("N|P%", "stop if more inputs of one task are bad [no limit]"),
    "on-error": ("HOW", "skip: leave out files that are gone since the plan [fail]"),
    "sandbox": (None, "lock up decoders"),
    "spool": ("DIR", "folder for temporary files [beside DIR]"),
}
_PATHS = ("source", "spool")
_TOLD_MAX = 200  # lines of shardpack in the terminal, of one run
_TICK_SECONDS = 0.5
_LINE_SECONDS = 10.0  # between two lines of progress in a file

# Ends shardpack when the process that started it dies, since another task begins the shard again.
_LEASH = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15)
if os.getppid() != int(sys.argv[1]):
    sys.exit(75)
os.execv(sys.argv[2], sys.argv[2:])
"""

Result = tuple[int, str]  # exit code, and what shardpack said
Task = Callable[[int], Result]  # it is given the number of a part


class Stop(Exception):
    """The end of the program, with a sentence and an exit code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Cluster(Protocol):
    """What a scheduler does here."""

    def cpus(self) -> list[int]:
        """The number of CPUs of each machine, or [] if it is not known yet."""

    def start(self, task: Task, parts: list[int], jobs: int) -> None:
        """Call ``task`` with each part, elsewhere, each time with ``jobs`` CPUs."""

    def ended(self) -> Iterator[tuple[int, Result]]:
        """The parts that ended since the last call, each with its result."""

    def stop(self) -> None:
        """End what runs, and leave the cluster."""


# ---- on the machines of the cluster ----


def run_part(part: int, count: int, command: list[str], programs: list[str], mark: str) -> Result:
    """Build one part here, with the first of ``programs`` that is there."""
    host = socket.gethostname()
    program = next(filter(None, map(shutil.which, programs)), None)
    if program is None:
        return IO, f"{host}: there is no {' and no '.join(programs)}; install shardpack there, or use --shardpack PATH"
    leash = [sys.executable, "-I", "-S", "-c", _LEASH, str(os.getpid()), program]
    child = subprocess.Popen(
        [*leash, *command, "--part", f"{part}/{count}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "LIBSHARD_BUILD": mark},
    )
    try:
        text = child.communicate()[1].decode(errors="replace").strip()
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()
    code = child.returncode
    if code < 0:
        return IO, f"{text}\n{host}: {program} was ended by signal {-code}".strip()
    return code, f"{text}\n{host}: {program} ended with exit code {code}".strip() if code else text


def run_or_raise(part: int, task: Task) -> Result:
    """For schedulers that start a task again if it raises."""
    code, text = result = task(part)
    if may_end_well(code):
        raise RuntimeError(code, text)
    return result


def may_end_well(code: int) -> bool:
    """Whether another try may succeed: a disk was full, a process was stopped or killed."""
    return code in (IO, STOPPED, INTERRUPTED)


def end_marked(mark: str) -> None:
    """End what run_part() has started in this process, for schedulers that end no task."""
    psutil = importlib.import_module("psutil")
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if child.environ().get("LIBSHARD_BUILD") == mark:
                child.terminate()


def result_of(error: BaseException) -> Result:
    """What run_or_raise() raised, or what the scheduler says of a task that came to no end."""
    if isinstance(error, RuntimeError) and len(error.args) == 2:
        return error.args[0], error.args[1]
    return IO, f"{type(error).__name__}: {error}"


# ---- here ----


def parser(name: str, most_tasks: int) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """Returns the parsers of ``python -m libshard.NAME`` and of its verb `build`."""
    program = argparse.ArgumentParser(prog=f"python -m libshard.{name}", allow_abbrev=False)
    words = f"Make the missing shards of a plan on a cluster of {name}."
    verbs = program.add_subparsers(required=True, metavar="build")
    build = verbs.add_parser("build", help=words, description=words, allow_abbrev=False)
    build.add_argument("dir", metavar="DIR", help="folder given to `shardpack plan`, which all machines see")
    build.add_argument("--shardpack", metavar="PATH", help="program to run [as on this machine, or in PATH]")
    build.add_argument("-j", "--jobs", type=_count, metavar="N", help="CPUs of a task [the cluster's, shared out]")
    build.add_argument("--tasks", type=_count, metavar="N", default=most_tasks, help=f"at most N tasks [{most_tasks}]")
    build.add_argument("--retries", type=_whole, metavar="N", default=5, help="times to start a failed task again [5]")
    build.add_argument("-q", "--quiet", action="store_true", help="warnings and errors only")
    for option, (metavar, text) in PASSED.items():
        how: dict[str, Any] = {"metavar": metavar} if metavar else {"action": "store_true"}
        build.add_argument(f"--{option}", help=text.replace("%", "%%"), **how)
    return program, build


def _whole(text: str, least: int = 0) -> int:
    if not (text.isascii() and text.isdigit() and least <= int(text) < 2**31):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {2**31 - 1}")
    return int(text)


def _count(text: str) -> int:
    return _whole(text, 1)


def needed(name: str) -> Any:
    """The package of a scheduler, which nothing else of libshard imports."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        text = f"the package {error.name} is not installed here; `pip install {name}` installs it"
        raise Stop(UNSUPPORTED, text) from None


def by_value(cloudpickle: Any) -> None:
    """Functions of this file are sent as they are."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])


def main(program: argparse.ArgumentParser, connect: Callable[[argparse.Namespace], Cluster]) -> NoReturn:
    """All of a program.  It exits as shardpack does."""
    args = program.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = _Build(args, program.prog).run(connect)
    except Stop as stop:
        print(f"{program.prog}: " + "\n".join(map(shown, str(stop).split("\n"))), file=sys.stderr)
        code = stop.code
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)


class _Build:
    def __init__(self, args: argparse.Namespace, prog: str) -> None:
        self.args, self.prog = args, prog
        here = shutil.which(args.shardpack or "shardpack")
        if here is None:
            raise Stop(IO, f"there is no program {args.shardpack or 'shardpack'}; say where with --shardpack PATH")
        self.here, self.dir = os.path.abspath(here), os.path.abspath(args.dir)
        self.told: set[str] = set()
        self.untold = 0

    def say(self, text: str) -> None:
        print(f"{self.prog}: {shown(text)}", file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        if not self.args.quiet:
            self.say(text)

    def status(self) -> dict[str, Any]:
        """How far the dataset is.  If it cannot be told, shardpack has said why."""
        command = [self.here, "status", self.dir, "--json"]
        if self.args.spool:
            command += ["--spool", os.path.abspath(self.args.spool)]
        asked = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        if asked.returncode:
            raise Stop(max(asked.returncode, 0) or IO, f"{self.args.dir}: `shardpack status` failed")
        status: dict[str, Any] = json.loads(asked.stdout)
        return status

    def run(self, connect: Callable[[argparse.Namespace], Cluster]) -> int:
        status = self.status()
        if status["state"] != "unfinished":
            return self.end(status)
        shards, count = numbers(status["retry_list"]), min(status["shard_count"], self.args.tasks)
        parts = sorted({k % count for k in shards})
        cluster = connect(self.args)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # Ray has set its own
        try:
            cpus = [n for n in cluster.cpus() if n > 0]
            jobs = self.jobs(cpus, len(parts))
            self.note(
                f"{self.args.dir}: {len(shards)} of {status['shard_count']} shards are missing; {len(parts)} tasks, "
                f"each with -j {jobs}, on {sum(cpus) or '?'} CPUs of {len(cpus) or '?'} machines"
            )
            cluster.start(self.task(count, jobs), parts, jobs)
            code = self.wait(cluster, len(parts))
        except KeyboardInterrupt:
            self.say("asked to stop; tasks are being ended")
            code = INTERRUPTED
        finally:
            with _uninterrupted():
                cluster.stop()
        return self.end(self.status(), code)

    def jobs(self, cpus: list[int], tasks: int) -> int:
        """CPUs of a task: if tasks are few, each gets more, as many as any machine has."""
        wanted: int | None = self.args.jobs
        if wanted and cpus and wanted > max(cpus):
            self.say(f"warning: --jobs {wanted}: machines have at most {max(cpus)} CPUs; tasks wait for a larger one")
        return wanted or max(1, min([sum(cpus) // tasks, *cpus]))

    def task(self, count: int, jobs: int) -> Task:
        command = ["build", self.dir, "--quiet", f"--jobs={min(jobs, 1024)}"]
        for option in PASSED:
            value = getattr(self.args, option.replace("-", "_"))
            if value:
                value = os.path.abspath(value) if option in _PATHS else value
                command.append(f"--{option}" if value is True else f"--{option}={value}")
        programs = [self.here] if self.args.shardpack else [self.here, "shardpack"]
        return functools.partial(
            run_part, count=count, command=command, programs=programs, mark=secrets.token_hex(8)
        )

    def wait(self, cluster: Cluster, tasks: int) -> int:
        """Until all tasks have ended well, or one has failed for good."""
        line, done = _Line(f"{self.prog}: {self.args.dir}", tasks, self.args.quiet), 0
        try:
            while True:
                for part, (code, text) in cluster.ended():
                    done += 1
                    if text:
                        line.clear()
                        self.tell(text)
                    if code != DONE:
                        line.clear()
                        self.say(f"task {part} failed; the others are being ended")
                        return code
                line.draw(done)
                if done == tasks:
                    return DONE
                time.sleep(_TICK_SECONDS)
        finally:
            line.clear()

    def tell(self, text: str) -> None:
        """What shardpack said.  Many tasks may say the same."""
        fresh = [t for t in text.split("\n") if t not in self.told]
        if len(self.told) + len(fresh) > _TOLD_MAX:
            self.untold += len(fresh)
        elif fresh:
            self.told.update(fresh)
            print("\n".join(fresh), file=sys.stderr, flush=True)

    def end(self, status: dict[str, Any], code: int = DONE) -> int:
        if self.untold:
            self.say(f"warning: the tasks wrote {self.untold} more lines, which are not shown")
        if status["missing"]:
            these = status["retry_list"]
            these = these if len(these) <= 200 else these[: these.rindex(",", 0, 200) + 1] + "..."
            advice = "call the same command again to go on"
            if code == DONE:
                code = MISMATCH
                advice = "all tasks ended well, so look if this is the same folder on all machines"
            missing = f"{status['missing']} of {status['shard_count']} shards are missing"
            self.say(f"{self.args.dir}: {missing}: {these}; {advice}")
        elif status["state"] == "sealed":
            self.note(f"{self.args.dir}: sealed already; nothing to do")
        else:
            then = f"`shardpack seal {shlex.quote(self.args.dir)}` makes the dataset of them"
            self.note(f"{self.args.dir}: {status['done']} of {status['shard_count']} shards are done; {then}")
        return code


class _Line:
    """Progress: one line that is drawn again and again, or in a file one line now and then."""

    def __init__(self, name: str, tasks: int, quiet: bool) -> None:
        self.name, self.tasks, self.quiet = name, tasks, quiet
        self.live = sys.stderr.isatty()
        self.begin = self.drawn = time.monotonic()

    def draw(self, done: int) -> None:
        now = time.monotonic()
        if self.quiet or not (self.live or now - self.drawn >= _LINE_SECONDS):
            return
        self.drawn = now
        text = f"{self.name}: {done} of {self.tasks} tasks"
        if done:
            text += f", about {_duration((now - self.begin) * (self.tasks - done) / done)} left"
        if self.live:
            text = "\r\x1b[K" + text[: shutil.get_terminal_size().columns - 1]
        print(text, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self.live and not self.quiet:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def numbers(retry_list: str) -> list[int]:
    """The numbers in "0,17,203-210"."""
    found: list[int] = []
    for piece in filter(None, retry_list.split(",")):
        first, _, last = piece.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    old = {s: signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
