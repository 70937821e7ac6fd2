# SPDX-License-Identifier: Apache-2.0
"""Grain's tests of elastic iterators and of states, whose ranges are records of libshard."""

import itertools
import sys

import grain
import packed
from absl import flags
from grain._src.python.dataset import dataset

if not flags.FLAGS.is_parsed():
    flags.FLAGS(sys.argv[:1])
_calls = itertools.count()


def number(record):
    return int(record["number"]) + (next(_calls) if packed.BROKEN else 0)


def a_range(start, stop=None, step=1):
    """As MapDataset.range, of numbers that libshard reads."""
    start, stop = (0, start) if stop is None else (start, stop)
    return grain.MapDataset.source(packed.numbers(stop)).map(number)[start:stop:step]


dataset.MapDataset.range = staticmethod(a_range)

from elastic_iterator_test import *  # noqa: E402, F403
from repeat_test import *  # noqa: E402, F403
from shuffle_test import *  # noqa: E402, F403
