# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: leaves out what `left_out.txt` names, expects the failures that it names, and
counts.  A line of the list that fits no test is an error, and so is a test that passes without
libshard."""

import fnmatch
import json
import os

import packed
import pytest

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "left_out.txt")
counts = {"passed": 0, "failed": 0, "listed": 0, "left_out": 0}


def lines():
    """(pattern of a test's name, "out" or "fails", reason) of each line for this suite."""
    suite = ""
    with open(LIST, encoding="utf-8") as f:
        for line in filter(None, (line.strip() for line in f)):
            if line.startswith("["):
                suite = line.strip("[]")
            elif suite == os.environ["PEERS_SUITE"] and not line.startswith("#"):
                what, pattern, reason = line.split(None, 2)
                assert what in ("out", "fails") and reason, line
                yield pattern, what, reason


def pytest_collection_modifyitems(config, items):
    kept, out, unused = [], [], {pattern for pattern, _, _ in lines()}
    for item in items:
        name = item.nodeid.partition("::")[2]
        for pattern, what, reason in lines():
            if fnmatch.fnmatchcase(name, pattern):
                unused.discard(pattern)
                if what == "out":
                    out.append(item)
                else:
                    item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
                break
        if item not in out:
            kept.append(item)
    if unused:
        raise pytest.UsageError(f"left_out.txt: no test fits {', '.join(sorted(unused))}")
    counts["left_out"] = len(out)
    config.hook.pytest_deselected(items=out)
    items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    before = packed.uses
    result = yield
    assert packed.uses > before, f"{item.nodeid} passes, and has nothing of libshard in it: leave it out"
    return result


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if report.skipped and hasattr(report, "wasxfail"):
        counts["listed"] += 1
    elif report.failed:
        counts["failed"] += 1
    elif report.when == "call" and report.passed and not hasattr(report, "context"):  # a subtest is no test
        counts["passed"] += 1


def pytest_sessionfinish():
    with open(os.environ["PEERS_COUNTS"], "w", encoding="utf-8") as f:
        json.dump(counts, f)
