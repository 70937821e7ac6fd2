/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz.h - what the fuzz targets share: a promise that was broken ends the process, and dice for
 * their mutators
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);
/* libFuzzer's; not there in replay */
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);

static inline void must(bool good, const char *what)
{
	if (!good) {
		fprintf(stderr, "broken promise: %s\n", what);
		abort();
	}
}

/* A failed call says what it returned, in one line that is fit for a terminal. */
static inline void check_error(int rc, const struct shard_error *err)
{
	if (rc == SHARD_OK || rc == SHARD_END)
		return;
	must(err->status == rc, "the error has another status than the call");
	must(err->message[0] && memchr(err->message, 0, sizeof(err->message)), "the error has no message");
	for (const char *p = err->message; *p; p++)
		must((uint8_t)*p >= 0x20 && *p != 0x7f, "the message holds a control character");
}

/* An archive in memory, and what reads it for tar.c and zip.c. */
struct bytes {
	const uint8_t *data;
	size_t size;
};

static inline bool read_bytes(void *context, uint64_t offset, void *out, size_t count)
{
	const struct bytes *b = context;

	must(offset <= b->size && count <= b->size - offset, "a read outside of the archive");
	if (count)
		memcpy(out, b->data + offset, count);
	return true;
}

struct dice {
	uint64_t state;
};

static inline struct dice dice(unsigned seed)
{
	return (struct dice){seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
}

static inline uint64_t dice_draw(struct dice *d)
{
	d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return d->state >> 33 ^ d->state << 31;
}

static inline unsigned dice_roll(struct dice *d, unsigned sides)
{
	return (unsigned)(dice_draw(d) % sides);
}

/* A number that code is likely to be wrong about. */
static inline uint64_t dice_number(struct dice *d)
{
	uint64_t one = UINT64_C(1) << dice_roll(d, 64);

	switch (dice_roll(d, 8)) {
	case 0:
		return 0;
	case 1:
		return dice_roll(d, 10);
	case 2:
		return one;
	case 3:
		return one - 1;
	case 4:
		return one + 1;
	case 5:
		return -one;
	case 6:
		return dice_roll(d, 64) * UINT64_C(4096);
	default:
		return dice_draw(d);
	}
}

/* Set or shift one number of 1, 2, 4 or 8 bytes at an aligned place of [at, at + bytes). */
static inline void dice_poke(struct dice *d, uint8_t *at, size_t bytes)
{
	size_t width = (size_t)1 << dice_roll(d, 4);
	uint64_t v = 0;

	if (bytes < width)
		return;
	at += dice_draw(d) % (bytes / width) * width;
	memcpy(&v, at, width);
	switch (dice_roll(d, 4)) {
	case 0:
		v += dice_roll(d, 17) - UINT64_C(8);
		break;
	case 1:
		v ^= UINT64_C(1) << dice_roll(d, 8 * (unsigned)width);
		break;
	default:
		v = dice_number(d);
		break;
	}
	memcpy(at, &v, width);
}

#endif
