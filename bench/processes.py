#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""processes.py FILE.json - the rows of several processes: median, range, and how many count

The file is what `make bench` printed.  publish.py says which processes count.
"""
import sys

import publish

run = publish.Run(sys.argv[1])
print(f"\nmedians of {run.process_count} processes, and the range of their medians")
print(f"{'row':<30} {'ours':>28} {'ratio':>24} {'CPU':>22}  processes")
for name, row in run.rows.items():
    count = f"{len(row.counted)} of {run.process_count}{'' if row.published else ' NOT TO BE PUBLISHED'}"
    print(f"{name:<30} {row.range('ours', ' ' + row.unit):>28} {row.range('ratio'):>24} "
          f"{row.range('cpu_times', 'x'):>22}  {count}")
