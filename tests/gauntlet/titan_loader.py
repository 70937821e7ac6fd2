# SPDX-License-Identifier: Apache-2.0
"""torchtitan's GrainDataLoader over the numbers 0, 1, 2, ..., as a test of it would make one."""

from dataclasses import dataclass

from torchtitan.components.data.collators import Collator
from torchtitan.components.data.dataset import SingleDatasetConfig
from torchtitan.components.data.loader import GrainDataLoader


@dataclass(frozen=True)
class Numbers:
    """A source and its configuration."""

    count: int

    def build(self, *, dataset_iteration_policy):
        return range(self.count)


class Plain(Collator):
    """A batch as the list of its rows."""

    @dataclass(kw_only=True, slots=True)
    class Config(Collator.Config):
        size: int

    def __init__(self, config, *, context):
        self.size = config.size

    def __call__(self, rows):
        return [int(row) for row in rows]

    def num_rows_per_batch(self):
        return self.size


def make(count, size, rank, world):
    config = GrainDataLoader.Config(
        dataset=SingleDatasetConfig(source=Numbers(count)), collator=Plain.Config(size=size)
    )
    return GrainDataLoader(
        config, dp_world_size=world, dp_rank=rank, tokenizer=None, max_context_length=1, num_tokens_per_batch=size
    )


def rows(batch):
    return batch
