/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_tiff_stub.c - a build without libtiff: TIFFs are called by their name
 */
#include "shard_pack.h"
#include "tools/shardpack/images/images.h"

enum decode_status tiff_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			    struct decode_verdict *v)
{
	(void)d, (void)bytes, (void)size, (void)out;
	return decode_bad(v, SHARD_MISS_UNSUPPORTED,
			  "is a TIFF, and this shardpack was built without libtiff; install that and build anew, or "
			  "convert it to PNG");
}

const char *decoder_tiff_version(void)
{
	return NULL;
}
