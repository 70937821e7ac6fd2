/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tiff_pages.h - how many pages a TIFF has
 */
#ifndef SHARD_DECODE_TIFF_PAGES_H
#define SHARD_DECODE_TIFF_PAGES_H

#include <stddef.h>

#include "tools/shardpack/images/decode_verdict.h"

#define TIFF_NO_COLOURS UINT32_MAX

struct tiff_pages {
	uint64_t count;
	uint32_t colours; /* PhotometricInterpretation of the first one, or TIFF_NO_COLOURS */
};

/* Pages are a list in the file.  Bad input if it has none, leaves the file or never ends. */
enum decode_status tiff_pages(const uint8_t *bytes, size_t size, struct tiff_pages *out, struct decode_verdict *v);

#endif
