# SPDX-License-Identifier: Apache-2.0
"""What the programs for Ray, Dask and submitit share, without these packages: tasks with the real
shardpack, in a cluster that calls them one after the other."""

import argparse
import contextlib
import functools
import io
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path
from unittest import mock

from libshard import _cluster, dask, ray, submitit

PACK = os.environ["BUILD"] + "/bin/shardpack"
NAMES = ("ray", "dask", "submitit")
PACKAGES = {"ray": "ray", "dask": "distributed", "submitit": "submitit"}
NOT_PASSED = {"part", "jobs", "quiet", "steal", "no-wait", "grace", "again", "report", "verbose", "help"}


class Inline(_cluster.Cluster):
    """Calls tasks here.  `fails` are parts that say what they are told to."""

    def __init__(self, cpus=(4, 2), fails=None):
        self.machines, self.fails, self.called, self.stopped = list(cpus), fails or {}, [], False

    def __call__(self, args):
        return self

    def cpus(self):
        return self.machines

    def start(self, task, parts, jobs):
        self.task, self.parts, self.jobs = task, list(parts), jobs

    def ended(self):
        while self.parts:
            part = self.parts.pop(0)
            self.called.append(part)
            yield part, self.fails[part] if part in self.fails else self.task(part)

    def stop(self):
        self.stopped = True


def plan(folder, source, *words):
    command = [PACK, "plan", "raw", source, "-o", folder, "--schema", "x:u8[4]", "-q", "--shard-records", "4"]
    subprocess.run([*command, *words], check=True)


def program(name, *words, env=None):
    """Exit code and stderr of python -m libshard.NAME, where no such package is."""
    command = [sys.executable, "-m", f"libshard.{name}", *words]
    path = os.pathsep.join(filter(None, ["none", os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": path, "COLUMNS": "80", **(env or {})}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    return done.returncode, done.stderr


class Cluster(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory(dir=".")
        self.addCleanup(self.temp.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.temp.name)
        Path("records.bin").write_bytes(bytes(range(256)))  # 64 records, 16 shards
        Path("none").mkdir()
        for package in (*PACKAGES.values(), "cloudpickle"):
            Path("none", f"{package}.py").write_text(f"raise ModuleNotFoundError('no', name={package!r})\n")

    def build(self, cluster, *words):
        """Exit code and stderr of a build."""
        parser, _ = _cluster.parser("inline", 100)
        err = io.StringIO()
        with (
            mock.patch.object(sys, "argv", ["inline", "build", "ds", "--shardpack", PACK, *words]),
            contextlib.redirect_stderr(err),
            mock.patch.object(_cluster.signal, "signal"),
            self.assertRaises(SystemExit) as end,
        ):
            _cluster.main(parser, cluster)
        return end.exception.code, err.getvalue()

    def test_whole(self):
        plan("ds", "records.bin")
        subprocess.run([PACK, "build", "ds", "--part", "3/16", "-q"], check=True)
        cluster = Inline()
        code, said = self.build(cluster)
        self.assertEqual((code, cluster.jobs, cluster.stopped), (0, 1, True), said)
        self.assertEqual(cluster.called, [k for k in range(16) if k != 3])
        self.assertIn("ds: 15 of 16 shards are missing; 15 tasks, each with -j 1, on 6 CPUs of 2 machines", said)
        self.assertIn("ds: 16 of 16 shards are done; `shardpack seal ds` makes the dataset of them", said)
        for _ in range(2):  # nothing is left to do, so no cluster is asked
            code, said = self.build(None)
            self.assertEqual(code, 0, said)
            subprocess.run([PACK, "seal", "ds", "-q"], check=True)
        self.assertIn("sealed already", said)
        plan("one", "records.bin")
        subprocess.run([PACK, "build", "one", "-q"], check=True)
        subprocess.run([PACK, "seal", "one", "-q"], check=True)
        one, ds = ({p.name: p.read_bytes() for p in Path(folder).iterdir()} for folder in ("one", "ds"))
        self.assertEqual(one, ds)

    def test_few_tasks(self):
        """A task for several shards; CPUs are shared out, as many as any machine has."""
        plan("ds", "records.bin")
        cluster = Inline(cpus=[0, 16, 12])
        code, said = self.build(cluster, "--tasks", "3")
        self.assertEqual((code, cluster.called, cluster.jobs), (0, [0, 1, 2], 9), said)
        for cpus, tasks, wanted in (([16, 12], 1, 12), ([16, 12], 2, 12), ([], 5, 1), ([4], 9, 1), ([8, 0], 2, 4)):
            parser, _ = _cluster.parser("inline", 100)
            args = parser.parse_args(["build", "ds", "--shardpack", PACK])
            jobs = _cluster._Build(args, "p").jobs([n for n in cpus if n], tasks)
            self.assertEqual(jobs, wanted, (cpus, tasks))

    def test_options(self):
        """shardpack has no option that these programs have forgotten; each is passed on."""
        text = subprocess.run([PACK, "build", "--help"], capture_output=True, text=True, check=True).stdout
        options = set(re.findall(r"--([a-z][a-z-]+)", text[: text.index("Example")]))
        self.assertEqual(options, set(_cluster.PASSED) | NOT_PASSED)
        plan("ds", "records.bin")
        cluster = Inline()
        words = "--trust-names --read-back no --max-bad 5% --on-error skip --sandbox --spool . --source .".split()
        code, said = self.build(cluster, "-j", "2", *words)
        self.assertEqual(code, 2, said)
        self.assertIn("--sandbox is for images", said)
        here = os.getcwd()
        self.assertEqual(
            cluster.task.keywords["command"],
            ["build", f"{here}/ds", "--quiet", "--jobs=2", f"--source={here}", "--trust-names", "--read-back=no"]
            + ["--max-bad=5%", "--on-error=skip", "--sandbox", f"--spool={here}"],
        )

    def test_fails(self):
        """The first task that fails for good ends all, and what shardpack said is shown once."""
        plan("ds", "records.bin")
        Path("records.bin").write_bytes(bytes(256))
        cluster = Inline()
        code, said = self.build(cluster, "-q")
        self.assertEqual((code, cluster.called, cluster.stopped), (5, [0], True), said)
        self.assertRegex(said, r"shardpack: \S*records\.bin: .*\n.*ended with exit code 5")
        self.assertIn("task 0 failed", said)
        self.assertIn("16 of 16 shards are missing: 0-15; call the same command again to go on", said)
        code, said = self.build(Inline(), "--read-back", "maybe")
        self.assertEqual(code, 2, said)
        self.assertIn("maybe", said)

    def test_lost(self):
        """Tasks that end well and leave no shard: another folder on that machine."""
        plan("ds", "records.bin")
        code, said = self.build(Inline(fails={7: (0, "shardpack: warning: w"), 8: (0, "shardpack: warning: w")}))
        self.assertEqual(code, 5, said)
        self.assertIn("2 of 16 shards are missing: 7-8; all tasks ended well, so look if this is the same folder", said)
        self.assertEqual(said.count("warning: w"), 1)
        long = {k: (0, "\n".join(f"line {k} {i}" for i in range(150))) for k in (7, 8)}
        code, said = self.build(Inline(fails=long))
        self.assertEqual(said.count("line "), 150)
        self.assertIn("warning: the tasks wrote 150 more lines, which are not shown", said)

    def test_interrupted(self):
        plan("ds", "records.bin")
        cluster = Inline()
        cluster.ended = mock.Mock(side_effect=KeyboardInterrupt)
        code, said = self.build(cluster)
        self.assertEqual((code, cluster.stopped), (130, True), said)
        self.assertIn("16 of 16 shards are missing: 0-15; call the same command", said)

    def test_list(self):
        self.assertEqual(_cluster.numbers("0,17,203-206"), [0, 17, 203, 204, 205, 206])
        self.assertEqual(_cluster.numbers(""), [])
        cut = {"missing": 900, "shard_count": 1800, "retry_list": ",".join(map(str, range(0, 1800, 2)))}
        err = io.StringIO()
        args = argparse.Namespace(shardpack=PACK, dir="ds")
        with contextlib.redirect_stderr(err):
            self.assertEqual(_cluster._Build(args, "p").end(cut, 3), 3)
        self.assertRegex(err.getvalue(), r"^p: ds: 900 of 1800 shards are missing: 0,2,[0-9,]{150,200},\.\.\.; call")
        self.assertEqual([_cluster._duration(s) for s in (3.4, 61, 7260)], ["3 s", "1 min 1 s", "2 h 1 min"])

    def test_part(self):
        run = functools.partial(_cluster.run_part, count=16, command=["build", "ds", "-q"], mark="m")
        plan("ds", "records.bin")
        self.assertEqual(run(5, programs=["nowhere", PACK]), (0, ""))
        self.assertEqual([p.name for p in Path("ds").glob("*.shard")], ["00005.shard"])
        code, text = run(5, programs=["nowhere", "none either"])
        self.assertEqual((code, _cluster.may_end_well(code)), (3, True))
        self.assertIn("there is no nowhere and no none either; install shardpack there", text)
        with self.assertRaises(RuntimeError) as caught:
            _cluster.run_or_raise(5, functools.partial(run, programs=["nowhere"]))
        self.assertEqual(_cluster.result_of(caught.exception)[0], 3)
        self.assertEqual(_cluster.result_of(OSError("lost")), (3, "OSError: lost"))
        for script, wanted in (("kill -9 $$", (3, "by signal 9")), ("echo no >&2; exit 1", (1, "exit code 1"))):
            Path("fake").write_text(f"#!/bin/sh\n{script}\n")
            Path("fake").chmod(0o755)
            code, text = run(5, programs=["./fake"])
            self.assertEqual(code, wanted[0])
            self.assertIn(wanted[1], text)
        self.assertTrue(text.startswith("no\n"))

    def test_leash(self):
        """If the process that runs a task is killed, its shardpack ends too."""
        Path("slow").write_text("#!/bin/sh\necho $$ >started\nexec sleep 600\n")
        Path("slow").chmod(0o755)
        code = "from libshard import _cluster; _cluster.run_part(0, 1, [], ['./slow'], 'm')"
        with subprocess.Popen([sys.executable, "-c", code]) as task:
            while not (Path("started").exists() and Path("started").read_text().endswith("\n")):
                self.assertIsNone(task.poll())
                time.sleep(0.05)
            task.kill()
        status = Path("/proc", Path("started").read_text().strip(), "status")
        end = time.monotonic() + 60
        while status.exists() and "State:\tZ" not in status.read_text():
            self.assertLess(time.monotonic(), end, "it goes on")
            time.sleep(0.05)

    def test_programs(self):
        """Words, and packages that are not there."""
        plan("ds", "records.bin")
        for name in NAMES:
            words = ["--address", "tcp://127.0.0.1:1"] if name == "dask" else []
            code, said = program(name, "build", "ds", "--shardpack", PACK, *words)
            self.assertEqual(code, 4, said)
            wanted = PACKAGES[name]
            text = f"libshard.{name}: the package {wanted} is not installed here; `pip install {wanted}` installs it"
            self.assertIn(text, said)
        for wrong, says in (
            ([], "build"),
            (["build", "ds", "--tasks", "0"], "'0' is not a whole number from 1"),
            (["build", "ds", "--part", "0/2"], "unrecognized arguments: --part 0/2"),
            (["build", "none", "--shardpack", PACK], "shardpack: "),
        ):
            code, said = program("ray", *wrong)
            self.assertEqual(code, 2, said)
            self.assertIn(says, said)
        code, said = program("submitit", "build", "ds", "--shardpack", "./nowhere")
        text = "python -m libshard.submitit: there is no program ./nowhere; say where with --shardpack PATH\n"
        self.assertEqual((code, said), (3, text))
        self.assertEqual(program("dask", "build", "--help"), (0, ""))

    def test_lazy(self):
        code = textwrap.dedent("""\
            import sys, libshard
            assert not {"libshard.ray", "libshard._cluster"} & set(sys.modules)
            import libshard.ray, libshard.dask, libshard.submitit
            found = {"ray", "dask", "distributed", "submitit", "cloudpickle"} & set(sys.modules)
            assert not found, found
            """)
        subprocess.run([sys.executable, "-c", code], check=True)
        for module in (ray, dask, submitit):
            self.assertEqual(module.__all__, [])


if __name__ == "__main__":
    unittest.main()
