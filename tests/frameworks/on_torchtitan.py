# SPDX-License-Identifier: Apache-2.0
"""torchtitan: the data loader of docs/FRAMEWORKS.md, built from a Config, in its checkpoints.

The checkpoints are torch.distributed.checkpoint's, which torchtitan's own hand a loader to.
"""

import os
import re
from dataclasses import dataclass

import torch.distributed as dist
import torch.distributed.checkpoint as dcp

PACKAGES = ("torchtitan",)


def shown():
    """What the page's file defines."""
    with open(os.path.join(os.environ["ROOT"], "docs", "FRAMEWORKS.md")) as f:
        block = re.search(r"<!-- file: titan_loader.py -->\n```python\n(.*?)```", f.read(), re.S)
    scope = {"__name__": "titan_loader"}
    exec(compile(block[1], "titan_loader.py", "exec"), scope)
    return scope["ShardLoader"]


ShardLoader = shown()


class Numbered(ShardLoader):
    """Of records that are no tokens."""

    @dataclass(kw_only=True, slots=True)
    class Config(ShardLoader.Config):
        pass

    def rows(self, batch):
        return dict(batch), batch["id"]


def job(run):
    dist.init_process_group("gloo")
    config = Numbered.Config(dataset_path=run.data, seed=run.order.get("seed", 0), shuffle=not run.evaluate)
    loader = config.build(dp_world_size=run.world // run.peers, dp_rank=run.rank // run.peers, tokenizer=None,
                          seq_len=8, local_batch_size=run.batch)  # fmt: skip
    assert isinstance(loader, Numbered)
    run.length = len(loader.loader)
    if run.start and not run.forget:
        dcp.load({"dataloader": loader}, checkpoint_id=run.start)
    for batch, _ in loader:
        run.got(batch)
        if run.is_over:
            dcp.save({"dataloader": loader}, checkpoint_id=run.save)
            return
        if loader.loader.epoch == run.epochs:  # it has no end; torchtitan counts steps
            return
