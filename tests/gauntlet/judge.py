# SPDX-License-Identifier: Apache-2.0
"""Is a resume right?  Two sets of streams of record numbers are compared, and nothing else."""

import itertools
from collections import Counter


def verdict(want, came, across_ranks=False):
    """("right", "") or ("broken", how) or ("refused", how).

    ``want`` and ``came``: a dict of streams, each a list of steps, each a list of rows.  ``want``
    is what an uninterrupted job delivered behind the checkpoint, ``came`` what a resumed one did.
    ``across_ranks``: the number of ranks changed, so what a step delivers on all of them together
    is compared.
    """
    if "refused" in came:
        return "refused", came["refused"]
    if across_ranks:
        want, came = together(want), together(came)
    jobs = by_job(want)
    wrong = {}
    for job, ranks in jobs.items():
        how = doubled(ranks.values())
        differs = [name for name in ranks if want[name] != came.get(name)]
        if how:
            wrong[job] = f"without a stop: {how}"
        elif differs:
            wrong[job] = f"{differs[0]}: {difference(want[differs[0]], came.get(differs[0], []))}"
    if set(came) - set(want):
        wrong["more"] = f"streams that nobody wanted: {', '.join(sorted(set(came) - set(want)))}"
    if not wrong:
        return "right", ""
    job, how = next(iter(wrong.items()))
    if len(jobs) > 1:
        how = f"{len(wrong)} of {len(jobs)} jobs; {job}: {how}"
    return "broken", how


def by_job(streams):
    """Ranks of one job are streams whose names differ behind the last comma only."""
    jobs = {}
    for name, steps in streams.items():
        jobs.setdefault(name.rpartition(",")[0], {})[name] = steps
    return jobs


def together(streams):
    """Of several ranks, the rows of each step, whatever rank had them."""
    steps = itertools.zip_longest(*streams.values(), fillvalue=[])
    return {"all ranks": [sorted(itertools.chain(*step)) for step in steps]}


def doubled(ranks):
    """What is wrong with the steps of one job's ranks, taken together; "" if nothing is."""
    lengths = sorted({len(steps) for steps in ranks})
    if len(lengths) > 1:
        return f"ranks have {' or '.join(map(str, lengths))} steps"
    for k in range(lengths[0]):
        row, times = Counter(row for steps in ranks for row in steps[k]).most_common(1)[0]
        if times > 1:
            return f"record {row} comes {times} times in one step"
    return ""


def difference(want, came):
    """In words: the first rows that differ, and how many never or wrongly came."""
    a, b = ([row for step in steps for row in step] for steps in (want, came))
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    never, wrongly = Counter(a) - Counter(b), Counter(b) - Counter(a)
    if never or wrongly:
        sums = f"{sum(never.values())} rows never came, {sum(wrongly.values())} came that should not"
    else:
        sums = "the same rows in another order" if a != b else "the same rows in other steps"
    return f"wanted {shown(a[at:])}, got {shown(b[at:])}; {sums}"


def shown(rows):
    return " ".join(map(str, rows[:4])) + (" ..." if len(rows) > 4 else "") if rows else "nothing"
