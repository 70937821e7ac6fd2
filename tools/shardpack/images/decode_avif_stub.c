/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_avif_stub.c - a build without libavif: AVIFs are called by their name
 */
#include "shard_pack.h"
#include "tools/shardpack/images/images.h"

enum decode_status avif_run(struct decoder *d, const uint8_t *bytes, size_t size, struct image *out,
			    struct decode_verdict *v)
{
	(void)d, (void)bytes, (void)size, (void)out;
	return decode_bad(v, SHARD_MISS_UNSUPPORTED,
			  "is an AVIF, and this shardpack was built without libavif; install that and build anew, "
			  "or " AVIF_AS_PNG);
}

bool avif_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated)
{
	(void)bytes, (void)size, (void)rules;
	*stated = 0;
	return true;
}

const char *decoder_avif_version(void)
{
	return NULL;
}
