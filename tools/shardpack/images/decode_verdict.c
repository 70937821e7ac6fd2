/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_verdict.c - the fault of an image, in a sentence
 */
#include "shard_pack.h"
#include "tools/shardpack/images/images.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum decode_status decode_bad(struct decode_verdict *v, int reason, const char *format, ...)
{
	va_list args;

	v->reason = reason;
	va_start(args, format);
	vsnprintf(v->message, sizeof(v->message), format, args);
	va_end(args);
	return DECODE_BAD_INPUT;
}

enum decode_status decode_no_memory(struct decode_verdict *v)
{
	v->reason = 0;
	snprintf(v->message, sizeof(v->message), "out of memory while decoding");
	return DECODE_NO_MEMORY;
}

enum decode_status decode_first_of(uint64_t count, const char *format, const char *things, uint64_t most,
				   struct decode_verdict *v)
{
	if (count > most)
		return decode_bad(v, SHARD_MISS_LIMIT,
				  "%s has %" PRIu64 " %s: more than the limit of %" PRIu64 "; --limit frames=%" PRIu64
				  " packs the first one",
				  format, count, things, most, count);
	if (count > 1)
		snprintf(v->first, sizeof(v->first), "%s has %" PRIu64 " %s: the first one is packed", format, count,
			 things);
	return DECODE_OK;
}

enum decode_status decode_not_wide(struct decode_verdict *v, const char *format, const char *what)
{
	return decode_bad(v, SHARD_MISS_UNSUPPORTED,
			  "%s has %s, and 16 are asked for: pack it into a dataset of its own with "
			  "--dtype u8, or save it as PNG or TIFF with 16 bits",
			  format, what);
}

enum decode_status decode_bad_channels(struct decode_verdict *v, const char *format, int channel_count)
{
	return decode_bad(v, SHARD_MISS_UNSUPPORTED,
			  "%s has %d channels: a mask has one, save it as gray or with a palette; or give map=FILE, "
			  "or dtype=u32 for ids R + 256 G + 65536 B",
			  format, channel_count);
}

enum decode_status decode_bad_value(struct decode_verdict *v, const char *format, uint32_t value, uint32_t x,
				    uint32_t y)
{
	return decode_bad(v, SHARD_MISS_UNSUPPORTED,
			  "%s has the value %" PRIu32 " at column %" PRIu32 " of row %" PRIu32
			  ": a mask of u8 holds 0 to 255; dtype=u16 takes it",
			  format, value, x, y);
}
