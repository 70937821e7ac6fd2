/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_verdict.h - the fault of an image, in a sentence
 */
#ifndef SHARD_DECODE_DECODE_VERDICT_H
#define SHARD_DECODE_DECODE_VERDICT_H

#include <stdint.h>

#include "shard.h" /* enum shard_miss_reason */

enum decode_status {
	DECODE_OK = 0,
	DECODE_BAD_INPUT = 1, /* the verdict says why; the next run may be good */
	DECODE_NO_MEMORY = 2, /* says nothing about the input */
};

#define DECODE_FIRST_BYTES 80

/* What a file says of its pixels, or has beside them, and its record does not have. */
enum decode_dropped {
	DROPPED_ORIENTATION, /* the pixels are as they lie in the file */
	DROPPED_ALPHA,	     /* also of a palette, or of one transparent colour */
	DROPPED_PROFILE,     /* a colour profile, gamma or primaries other than those of sRGB */
	DROPPED_CMYK,	     /* four inks became RGB without a profile */
	DROPPED_BITS,	     /* samples of more than 8 bits, of which the upper 8 are left */
	DROPPED_COUNT,
};

struct decode_verdict {
	/*
	 * enum shard_miss_reason for DECODE_BAD_INPUT, else 0; with DECODE_OK also for accepted
	 * damage: TRUNCATED if only the end-of-image marker is missing, DAMAGED if pixels are made
	 * up.
	 */
	int reason;
	char message[240]; /* one line, without the file's name; empty without a reason */
	/* with DECODE_OK: of how many frames or pages only the first one was read; else empty */
	char first[DECODE_FIRST_BYTES];
	uint32_t dropped; /* with DECODE_OK: bits 1 << enum decode_dropped */
};

/* The pixels are packed without this. */
static inline void decode_drop(struct decode_verdict *v, enum decode_dropped what)
{
	v->dropped |= 1u << what;
}

/* Fill *v; returns DECODE_BAD_INPUT.  The reason is an enum shard_miss_reason. */
enum decode_status decode_bad(struct decode_verdict *v, int reason, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

enum decode_status decode_no_memory(struct decode_verdict *v);

/*
 * A file has so many frames, or pages, as `things` calls them: more than the limit of `most`, or
 * only the first one is read, which *v then says.
 */
enum decode_status decode_first_of(uint64_t count, const char *format, const char *things, uint64_t most,
				   struct decode_verdict *v);

/* The image has other samples than the 16 bits that were asked for: "8 bits a sample". */
enum decode_status decode_not_wide(struct decode_verdict *v, const char *format, const char *what);

/* Verdicts on a file that should be a mask.  `format` is its name. */
enum decode_status decode_bad_channels(struct decode_verdict *v, const char *format, int channel_count);
enum decode_status decode_bad_value(struct decode_verdict *v, const char *format, uint32_t value, uint32_t x,
				    uint32_t y);

#endif
