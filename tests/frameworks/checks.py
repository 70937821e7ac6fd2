# SPDX-License-Identifier: Apache-2.0
"""Checks that a framework's job must pass: record numbers that arrived, against expected.py.

A check returns nothing if all is well, and raises what is wrong.
"""

import functools

import expected
from launch import JobError, launch

WORLD, BATCH = 2, 6  # of which 100 records are 8 steps and a rest
STOP = 11  # steps: three into the second epoch
END = 8  # steps: all of the first epoch


class Wrong(Exception):
    """Something else arrived than what the order says."""


def compare(runs, batch, place=(0, 0), peers=1, **options):
    world = len(runs) // peers
    for run in runs:
        want = expected.steps(run.rank // peers, world, batch, place, **options)
        if run.rows == want:
            continue
        at = next((i for i, (a, b) in enumerate(zip(run.rows, want)) if a != b), min(len(run.rows), len(want)))
        got = run.rows[at] if at < len(run.rows) else f"no step, {len(run.rows)} came"
        raise Wrong(f"rank {run.rank} of {len(runs)}, step {at} of {len(want)}: got {got}, "
                    f"want {want[at] if at < len(want) else 'no step'}")  # fmt: skip


class Checks:
    """Of one framework; what several checks need is run once."""

    def __init__(self, job):
        self.job = job

    @functools.cached_property
    def plain(self):
        return launch(self.job, WORLD)

    @functools.cache  # noqa: B019
    def saved(self, stop):
        """The place of a checkpoint after so many steps, by the framework's own means."""
        runs = launch(self.job, WORLD, save=f"checkpoint-{stop}", stop=stop)
        for run in runs:
            want = expected.steps(run.rank, WORLD, BATCH)[:stop]
            if run.rows != want:
                raise Wrong(f"before the checkpoint: rank {run.rank} got {run.rows}, want {want}")
        return expected.place_after(stop, WORLD, BATCH)

    def go_on(self, world, batch, stop=STOP, **options):
        place = self.saved(stop)
        runs = launch(self.job, world, batch=batch, start=f"checkpoint-{stop}", **options)
        compare(runs, batch, place)

    def runs(self):
        compare(self.plain, BATCH)

    def length(self):
        want = expected.length(WORLD, BATCH)
        got = [run.length for run in self.plain]
        if got != [want] * WORLD:
            raise Wrong(f"the framework says {got} steps, and {want} are right")

    def resume(self):
        self.go_on(WORLD, BATCH)

    def resume_at_end(self):
        self.go_on(WORLD, BATCH, stop=END)

    def control(self):
        """The same without the loader's state must be noticed."""
        try:
            self.go_on(WORLD, BATCH, forget=True)
        except Wrong:
            return
        raise Wrong("the loader's state was not loaded, and nobody noticed")

    def other_world(self):
        """As many records in a step: 2 ranks of 6, then 3 of 4, and 1 of 12."""
        for world in (3, 1):
            self.go_on(world, WORLD * BATCH // world)

    def other_batch(self):
        """More records in a step: 3 ranks of 6."""
        self.go_on(3, BATCH)

    def uneven(self):
        """In training no record comes twice; in validation each one counts once."""
        compare(self.plain, BATCH)
        first = [row[0] for run in self.plain for step in run.rows[: run.length] for row in step]
        if len(set(first)) != len(first) or len({len(run.rows) for run in self.plain}) != 1:
            raise Wrong(f"{len(first)} rows of {len(set(first))} records in an epoch")
        runs = launch(self.job, WORLD, evaluate=True, epochs=1)
        compare(runs, BATCH, epochs=1, evaluate=True)
        counted = sorted(record for run in runs for step in run.rows for record, valid in step if valid)
        if counted != list(range(expected.RECORDS)):
            raise Wrong(f"{len(counted)} records count, and {expected.RECORDS} are right")

    def peers(self):
        """Four processes, of which two and two want the same rows."""
        runs = launch(self.job, 4, peers=2, epochs=1)
        compare(runs, BATCH, peers=2, epochs=1)
        if not runs[0].rows == runs[1].rows != runs[2].rows == runs[3].rows:
            raise Wrong("peers differ, or all ranks are equal")


def refuses(job, words, **options):
    """Each rank ends, with an error, and one of them says so."""
    try:
        launch(job, WORLD, **options)
    except JobError as e:
        if words not in str(e) or "did not end" in str(e):
            raise Wrong(f"{words!r} expected from ranks that end: {e}") from e
        return
    raise Wrong(f"{words!r} expected, and all went well")


# What a column is called, and its check.
COLUMNS = {
    "runs": "runs",
    "len": "length",
    "resume": "resume",
    "at an end": "resume_at_end",
    "control": "control",
    "other world": "other_world",
    "other batch": "other_batch",
    "uneven tail": "uneven",
    "peers": "peers",
}


def verdict(checks, name):
    """('OK' or 'FAIL', why)."""
    try:
        getattr(checks, name)()
    except (JobError, Wrong) as e:
        return "FAIL", str(e)
    return "OK", ""
