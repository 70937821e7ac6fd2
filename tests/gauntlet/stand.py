# SPDX-License-Identifier: Apache-2.0
"""What the cases of the gauntlet have in common: a process that plays one stage of one of them.

A case is a script with stands: functions of a stage and a folder, one for the framework as it is
and one for each way to have libshard in it.  Stages are processes of their own:

    through   runs without a stop, saves a state on its way, and returns what came behind that
    resume    is a new job: loads the state, and returns what comes
    forget    the control: the same without loading it

What is returned are record numbers as they were delivered: a list of steps, each a list of rows; or
a dict of such lists, if one process plays several ranks.
"""

import json
import os
import sys

STAGES = ("through", "resume", "forget")


class Refused(Exception):
    """A framework says that it cannot do this.  That is no wrong data."""


def play(stands):
    """Run the stand and stage that the command line names, and leave the rows in its folder."""
    stand, stage, folder = sys.argv[1:]
    assert stage in STAGES, stage
    rank = os.environ.get("RANK", "0")
    try:
        rows = stands[stand](stage, folder)
        said = rows if isinstance(rows, dict) else {f"rank {rank}": rows}
    except Refused as e:
        said = {"refused": str(e)}
    with open(os.path.join(folder, f"{stage}.{rank}.json"), "w", encoding="utf-8") as f:
        json.dump(said, f)
    leave_group()


def leave_group():
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed and distributed.is_initialized():
        distributed.barrier()
        distributed.destroy_process_group()


def numbers(batch):
    """Rows of a batch of libshard, by what is stored in them."""
    return batch["number"].tolist()


def dataset_of(folder):
    """The dataset whose record i has the number i; gauntlet.py has written it."""
    return os.path.join(folder, "ds")
