# SPDX-License-Identifier: Apache-2.0
"""The judge of the gauntlet, on streams whose verdict is plain."""

import judge

PAIR = {"rank 0": [[1, 2], [3, 4]], "rank 1": [[5, 6], [7, 8]]}
# story, wanted, came, across ranks, verdict, words of its reason
STORIES = [
    ("the same", PAIR, PAIR, False, "right", ""),
    ("a framework says no", PAIR, {"refused": "cannot"}, False, "refused", "cannot"),
    ("another order", {"rank 0": [[1], [2]]}, {"rank 0": [[2], [1]]}, False, "broken",
     "rank 0: wanted 1 2, got 2 1; the same rows in another order"),
    ("other steps", {"rank 0": [[1], [2]]}, {"rank 0": [[1, 2]]}, False, "broken", "the same rows in other steps"),
    ("too short", {"rank 0": [[1], [2]]}, {"rank 0": [[1]]}, False, "broken",
     "wanted 2, got nothing; 1 rows never"),
    ("too long", {"rank 0": [[1]]}, {"rank 0": [[1], [2]]}, False, "broken",
     "wanted nothing, got 2; 0 rows never"),
    ("a rank is missing", PAIR, {"rank 0": PAIR["rank 0"]}, False, "broken", "rank 1: wanted 5 6 7 8, got nothing"),
    ("a rank too many", {"rank 0": [[1]]}, {"rank 0": [[1]], "rank 1": [[2]]}, False, "broken",
     "nobody wanted: rank 1"),
    ("ranks that changed places", PAIR, {"rank 0": PAIR["rank 1"], "rank 1": PAIR["rank 0"]}, False,
     "broken", "rank 0"),
    ("a record on two ranks, and again behind the stop", {"rank 0": [[1]], "rank 1": [[1]]},
     {"rank 0": [[1]], "rank 1": [[1]]}, False, "broken", "record 1 comes 2 times in one step"),
    ("a rank with more steps", {"rank 0": [[1], [2]], "rank 1": [[3]]}, {"rank 0": [[1], [2]], "rank 1": [[3]]}, False,
     "broken", "ranks have 1 or 2 steps"),
    ("a record in two jobs", {"a, rank 0": [[1]], "b, rank 0": [[1]]}, {"a, rank 0": [[1]], "b, rank 0": [[1]]}, False,
     "right", ""),
    ("one job of two", {"a, rank 0": [[1]], "b, rank 0": [[1]]}, {"a, rank 0": [[1]], "b, rank 0": [[2]]}, False,
     "broken", "1 of 2 jobs; b"),
    ("fewer ranks with larger batches", PAIR, {"rank 0": [[6, 5, 2, 1], [8, 7, 4, 3]]}, True, "right", ""),
    ("fewer ranks, another step", PAIR, {"rank 0": [[6, 5, 2, 3], [8, 7, 4, 1]]}, True, "broken", "all ranks"),
    ("fewer ranks, a record twice", PAIR, {"rank 0": [[6, 5, 2, 1], [8, 7, 4, 4]]}, True, "broken",
     "1 rows never came"),
    ("fewer ranks, one of them short", PAIR, {"a": [[6, 5], [8, 7]], "b": [[2, 1]]}, True, "broken",
     "2 rows never came"),
    ("ranks that have a record twice", {"rank 0": [[1]], "rank 1": [[1]]}, {"rank 0": [[1, 1]]}, True, "broken",
     "record 1 comes 2 times"),
]  # fmt: skip

for story, want, came, across, verdict, words in STORIES:
    said, how = judge.verdict(want, came, across)
    assert said == verdict and words in how and bool(how) == bool(words), (story, said, how)
print(f"{len(STORIES)} stories")
