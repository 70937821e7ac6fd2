#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The order of records, written from ORDER.md alone: the twin of the library's C.

    shardorder.py --check
        verify the test vectors of ORDER.md
    shardorder.py order KIND N r w L u SEED EPOCH [P COUNT]
        print the records at positions P, P + 1, ...
    shardorder.py share MODE N P R B q
        print the count of steps, then step, row, position, padded
    shardorder.py mix L SEED WEIGHTS SIZES KIND r w u P COUNT
        print component, pass and record at positions P, P + 1, ... of a mixture
    shardorder.py answer QUESTION
        print the answer to a question that test vectors ask, such as fold 10 0 0 3

Plain and slow on purpose: names and formulas are those of ORDER.md.  Needs nothing but Python 3.
"""

import hashlib
import itertools
import math
import os
import sys

WORD = 2**64
G = 0x9E3779B97F4A7C15
M1 = 0xBF58476D1CE4E5B9
M2 = 0x94D049BB133111EB
RECORDS, PHASE, RUNS, WINDOWS, TWEAKS, TABLE, REST = range(1, 8)
SLOTS, COMPONENTS = 17, 18
TABLE_MAX = 65536
ROUNDS = 12
RECORDS_MAX = 2**62
CHANCE_EPOCH = 2**64 - 2


# Part 2: random words


def mix(z):
    z1 = (z ^ (z >> 30)) * M1 % WORD
    z2 = (z1 ^ (z1 >> 27)) * M2 % WORD
    return z2 ^ (z2 >> 31)


def scramble(z):
    z1 = z * M1 % WORD
    return (z1 ^ (z1 >> 32)) * M2 % WORD


def absorb(h, x):
    return mix(((h ^ x) + G) % WORD)


def key(seed, epoch, stream):
    return absorb(absorb(absorb(0, seed), epoch), stream)


def draw(k, i):
    return mix((k + (i + 1) * G) % WORD)


def below(h, m):
    return (h * m) >> 64


# Part 3: permutations


def table(n, k):
    t = list(range(n))
    for i in range(n - 1, 0, -1):
        j = below(draw(k, i), i + 1)
        t[i], t[j] = t[j], t[i]
    return t


class Feistel:
    def __init__(self, n, k):
        self.n = n
        self.b = math.isqrt(n - 1) + 1  # the least b with b * b >= n
        self.a = -(-n // self.b)
        self.keys = [draw(k, j) for j in range(ROUNDS)]

    def one_pass(self, x, tweak):
        hi, lo = divmod(x, self.b)
        for j in range(0, ROUNDS, 2):
            hi = (hi + below(scramble(lo ^ self.keys[j] ^ tweak), self.a)) % self.a
            lo = (lo + below(scramble(hi ^ self.keys[j + 1] ^ tweak), self.b)) % self.b
        return hi * self.b + lo

    def __call__(self, x, tweak=0):
        x = self.one_pass(x, tweak)
        while x >= self.n:
            x = self.one_pass(x, tweak)
        return x


def perm(n, k):
    """A function of [0, n); None if n is 0, when there is nothing to ask."""
    if n == 0:
        return None
    return table(n, k).__getitem__ if n <= TABLE_MAX else Feistel(n, k)


# Parts 4 to 6: orders


class Order:
    def __init__(self, kind, N, r=1, w=1, L=1, u=0, seed=0, epoch=0):
        if not 0 <= N <= RECORDS_MAX:
            raise ValueError(f"N is {N}, the limit is 2^62")
        self.kind, self.N, self.seed, self.epoch = kind, N, seed, epoch
        if kind == "one_level":
            self.records = perm(N, self.key(RECORDS))
        elif kind == "two_levels":
            if not (1 <= r <= RECORDS_MAX and 1 <= w < 2**32 and 1 <= L < 2**32 and 0 <= u <= RECORDS_MAX):
                raise ValueError(f"r, w, L, u are {r}, {w}, {L}, {u}: outside the ranges of ORDER.md part 1")
            self.init_two_levels(N, r, w, L, u)
        elif kind != "sequential":
            raise ValueError(f"kind is {kind!r}; it is sequential, one_level or two_levels")

    def key(self, stream):
        return key(self.seed, self.epoch, stream)

    def init_two_levels(self, N, r, w, L, u):
        self.r, self.L = r, L
        self.F = N // r
        self.phase = 0 if u == 0 or N == 0 else u * below(draw(self.key(PHASE), 0), -(-N // u))
        self.run = perm(self.F, self.key(RUNS))
        self.K = self.F // L
        V = max(1, self.K // w)
        self.q, self.e = divmod(self.K, V)
        self.rest = perm(N - self.K * L * r, self.key(REST))
        if self.K == 0:
            return
        self.M = (self.q + (self.e > 0)) * r
        self.table = None if self.M > TABLE_MAX else table(self.M, self.key(TABLE))
        self.feistel = {}

    def circle(self, c):
        return (c + self.phase) % self.N

    def window(self, l, v, n, x):
        if n not in self.feistel:
            self.feistel[n] = Feistel(n, self.key(WINDOWS))
        x = self.feistel[n](x, draw(self.key(TWEAKS), v * self.L + l))
        if self.table is None:
            return x
        x = self.table[x]
        while x >= n:
            x = self.table[x]
        return x

    def __call__(self, p):
        if not 0 <= p < self.N:
            raise ValueError(f"position {p} is outside of [0, {self.N})")
        if self.kind == "sequential":
            return p
        if self.kind == "one_level":
            return self.records(p)
        K, L, r, q, e, F = self.K, self.L, self.r, self.q, self.e, self.F
        if p >= K * L * r:
            s = self.rest(p - K * L * r)
            if s < (F % L) * r:
                return self.circle(self.run(K * L + s // r) * r + s % r)
            return self.circle(F * r + s - (F % L) * r)
        t, l = divmod(p, L)
        A = e * (q + 1) * r
        if t < A:
            n = (q + 1) * r
            v, x = divmod(t, n)
        else:
            n = q * r
            v, x = divmod(t - A, n)
            v += e
        s = self.window(l, v, n, x)
        i = l + (v * q + min(v, e) + s // r) * L
        return self.circle(self.run(i) * r + s % r)


# Part 7: ranks


def share(mode, N, P, R, B, q):
    """Yields (step, row, position, padded); the first value yielded is the count of steps."""
    if not (0 <= P <= N <= RECORDS_MAX and R >= 1 and B >= 1 and R * B <= 2**48 and q < R):
        raise ValueError("share: outside the ranges of ORDER.md part 7")
    left = N - P
    if mode == "drop":
        steps = left // (R * B)
    elif mode == "pad":
        steps = -(-left // (R * B))
    elif mode == "keep" and R == 1:
        steps = -(-left // B)
    else:
        raise ValueError(f"share: mode {mode!r} with {R} ranks; it is drop, pad, or keep with one rank")
    yield steps
    d = (q - P) % R
    for s in range(steps):
        rows = min(B, left - s * B) if mode == "keep" else B
        for j in range(rows):
            y = P + (s * B + j) * R + d
            yield (s, j, y % N, 1) if y >= N else (s, j, y, 0)


# Part 11: selections


def part(n, seed, a, b):
    """The places that the part from a to b chooses, in the order by chance."""
    if not 0 <= a < b <= 1:
        raise ValueError(f"the part from {a} to {b} is outside the range of ORDER.md part 11")

    def c(x):
        return n if x == 1 else min(n, int(x * float(n) + 0.5))

    return by_chance(n, seed, range(c(a), c(b)))


def fold(n, seed, k, K, others=False):
    if not 0 <= k < K < 2**32:
        raise ValueError(f"fold {k} of {K} is outside the range of ORDER.md part 11")
    begin, end = n * k // K, n * (k + 1) // K
    return by_chance(n, seed, [*range(begin), *range(end, n)] if others else range(begin, end))


def by_chance(n, seed, positions):
    if not positions:
        raise ValueError("there is no empty selection")
    o = Order("one_level", n, seed=seed, epoch=CHANCE_EPOCH)
    return sorted(o(p) for p in positions)


def leb128(number):
    low = number & 127
    return bytes([low]) if number < 128 else bytes([low | 128]) + leb128(number >> 7)


def selection_text(dataset, n, records):
    gaps = b"".join(leb128(record - before - 1) for before, record in zip([-1, *records], records))
    head = f"libshard selection 1\ndataset {dataset}\nrecords {n}\nselected {len(records)}\ngaps {len(gaps)}\n"
    return head.encode() + gaps + b"\n"


# Part 12: mixtures


class Mixture:
    def __init__(self, L, seed, weights):
        W = sum(weights)
        if not (weights and min(weights) >= 1 and W <= 4096 and 1 <= L and W * L <= 2**22):
            raise ValueError("mixture: outside the ranges of ORDER.md part 12")
        self.L, self.weights, self.W = L, weights, W
        self.slots, self.components = key(seed, 0, SLOTS), key(seed, 0, COMPONENTS)
        self.of = [d for d, w in enumerate(weights) for _ in range(w)]
        self.blocks, self.orders = {}, {}

    def block(self, l, b):
        """(d, j) of each slot."""
        if (l, b) not in self.blocks:
            y = perm(self.W, draw(self.slots, b * self.L + l))
            count, slots = [0] * len(self.weights), []
            for s in range(self.W):
                d = self.of[y(s)]
                slots.append((d, count[d]))
                count[d] += 1
            self.blocks[l, b] = slots
        return self.blocks[l, b]

    def __call__(self, P):
        """The component, and its own position."""
        t, l = divmod(P, self.L)
        b, s = divmod(t, self.W)
        d, j = self.block(l, b)[s]
        return d, (b * self.weights[d] + j) * self.L + l

    def inverse(self, d, q):
        x, l = divmod(q, self.L)
        b, j = divmod(x, self.weights[d])
        return (b * self.W + self.block(l, b).index((d, j))) * self.L + l

    def record(self, P, sizes, kind, r, w, u):
        """The component, its pass, and the record."""
        d, q = self(P)
        number, p = divmod(q, sizes[d])
        if (d, number) not in self.orders:
            self.orders[d, number] = Order(kind, sizes[d], r, w, self.L, u, draw(self.components, d), number)
        return d, number, self.orders[d, number](p)


def run_on(E, P, R, B, q):
    """Yields the epoch of each step, and the positions of rank q in it."""
    if not (1 <= E <= RECORDS_MAX and R >= 1 and B >= 1 and R * B <= 2**48 and q < R):
        raise ValueError("run_on: outside the ranges of ORDER.md part 12")
    while (P // E + 1) * E <= RECORDS_MAX:
        d = (q - P) % R
        yield P // E, [P + j * R + d for j in range(B)]
        P += R * B


def mixture_text(components):
    """Of (weight, dataset, subset) of each component."""
    lines = [f"weight {w} dataset {dataset} subset {subset}\n" for w, dataset, subset in components]
    return "".join(["libshard mixture 1\n", *lines]).encode()


# Vectors


def whole(text):
    return [int(n) for n in text.split(",")]


def hashed(numbers):
    return hashlib.sha256(b"".join(n.to_bytes(8, "little") for n in numbers)).hexdigest()


def answer_key(*numbers):
    k = key(*map(int, numbers))
    return f"{k:016x}", f"{draw(k, 0):016x}", f"{draw(k, 1):016x}"


def answer_order(kind, *numbers):
    o = Order(kind, *map(int, numbers))
    records = [o(p) for p in range(o.N)]
    return hashed(records), *records[:4]


def answer_at(kind, *numbers):
    *numbers, p = map(int, numbers)
    return (Order(kind, *numbers)(p),)


def answer_share(mode, *numbers):
    steps, *rows = share(mode, *map(int, numbers))
    return steps, *(f"{y}+" if padded else y for _, _, y, padded in rows)


def answer_records(records):
    return len(records), hashed(records), *records[:4]


def answer_part(n, seed, a, b):
    return answer_records(part(int(n), int(seed), float(a), float(b)))


def answer_fold(*numbers):
    return answer_records(fold(*map(int, numbers)))


def answer_others(*numbers):
    return answer_records(fold(*map(int, numbers), others=True))


def answer_selected(dataset, n, records):
    return (hashlib.sha256(selection_text(dataset, int(n), whole(records))).hexdigest(),)


def answer_mix(L, seed, weights, count):
    m = Mixture(int(L), int(seed), whole(weights))
    found = [m(P) for P in range(int(count))]
    return hashed(n for both in found for n in both), *(f"{d}:{q}" for d, q in found[:4])


def answer_mixat(L, seed, weights, sizes, kind, *numbers):
    m = Mixture(int(L), int(seed), whole(weights))
    *shape, P = map(int, numbers)
    return *m.record(P, whole(sizes), kind, *shape), m.inverse(*m(P))


def answer_mixture(*words):
    return (hashlib.sha256(mixture_text(zip(words[::3], words[1::3], words[2::3]))).hexdigest(),)


def answer_run_on(*numbers):
    *numbers, count = map(int, numbers)
    steps = itertools.islice(run_on(*numbers), count)
    return tuple(f"{epoch}:{','.join(map(str, rows))}" for epoch, rows in steps)


ANSWERS = {
    "key": answer_key,
    "order": answer_order,
    "at": answer_at,
    "share": answer_share,
    "part": answer_part,
    "fold": answer_fold,
    "others": answer_others,
    "selected": answer_selected,
    "mix": answer_mix,
    "mixat": answer_mixat,
    "mixture": answer_mixture,
    "run_on": answer_run_on,
}


def answer(question):
    """What ORDER.md prints after the arrow, for the words before it."""
    what, *args = question.split()
    return " ".join(map(str, ANSWERS[what](*args)))


def check():
    document = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ORDER.md")
    with open(document, encoding="utf-8") as f:
        lines = [line.strip() for line in f if " -> " in line and line.split()[0] in ANSWERS]
    wrong = 0
    for line in lines:
        question, want = line.split(" -> ")
        got = answer(question)
        if got != want:
            wrong += 1
            print(f"{question}: ORDER.md has {want}, computed {got}")
    print(f"{len(lines)} vectors, {wrong} wrong")
    return 1 if wrong or not lines else 0


def main(argv):
    if argv == ["--check"]:
        return check()
    if len(argv) in (9, 11) and argv[0] == "order":
        numbers = list(map(int, argv[2:]))
        o = Order(argv[1], *numbers[:7])
        first, count = numbers[7:] or (0, o.N)
        for p in range(first, first + count):
            print(o(p))
        return 0
    if len(argv) == 11 and argv[0] == "mix":
        m = Mixture(int(argv[1]), int(argv[2]), whole(argv[3]))
        r, w, u, first, count = map(int, argv[6:])
        for P in range(first, first + count):
            print(*m.record(P, whole(argv[4]), argv[5], r, w, u))
        return 0
    if len(argv) > 1 and argv[0] == "answer" and argv[1] in ANSWERS:
        print(answer(" ".join(argv[1:])))
        return 0
    if len(argv) == 7 and argv[0] == "share":
        steps, *rows = share(argv[1], *map(int, argv[2:]))
        print(steps)
        for row in rows:
            print(*row)
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
