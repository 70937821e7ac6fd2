/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xxh3.h - XXH3 compiled for each kind of processor, of which checksum.c picks one at run time
 *
 * libxxhash has such a choice of its own, but not in every archive of it, and not on every machine.
 * Its header has the whole algorithm; compiled here, libshard depends on the header alone, and can
 * be linked into one file.
 */
#ifndef SHARD_CODEC_XXH3_H
#define SHARD_CODEC_XXH3_H

#include <stddef.h>
#include <stdint.h>

#define XXH3_STATE_BYTES 1024 /* more than the state of any version so far */
#define XXH3_STATE_ALIGN 64

struct xxh3 {
	const char *name;
	uint64_t (*hash64)(const void *data, size_t data_bytes);
	void (*hash128)(const void *data, size_t data_bytes, uint64_t half[2]); /* the low one first */

	/* Streams; a state of one kind is good for every other.  There is data to update with. */
	void (*reset64)(void *state);
	void (*update64)(void *state, const void *data, size_t data_bytes);
	uint64_t (*digest64)(const void *state);
	void (*reset128)(void *state);
	void (*update128)(void *state, const void *data, size_t data_bytes);
	void (*digest128)(const void *state, uint64_t half[2]);
};

/*
 * The slow twin, which every processor runs; the others are NULL where the processor is of another
 * family.
 */
extern const struct xxh3 xxh3_plain;
extern const struct xxh3 *const xxh3_avx2, *const xxh3_avx512;

#endif
