/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idx.c - the head of an IDX file, as MNIST is distributed in
 */
#include "tools/shardpack/parse/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shard.h"

static uint32_t dtype_of(uint8_t type)
{
	switch (type) {
	case 0x08:
		return SHARD_U8;
	case 0x09:
		return SHARD_I8;
	case 0x0b:
		return SHARD_I16;
	case 0x0c:
		return SHARD_I32;
	case 0x0d:
		return SHARD_F32;
	case 0x0e:
		return SHARD_F64;
	default:
		return 0;
	}
}

bool idx_parse(const uint8_t *bytes, size_t size, struct npy *out, char *why, size_t why_bytes)
{
	memset(out, 0, sizeof(*out));
	if (size < 4 || bytes[0] || bytes[1]) {
		snprintf(why, why_bytes,
			 "not an IDX file: it must begin with two zero bytes, a type and a number of axes");
		return false;
	}
	out->swap = true;
	out->dtype = dtype_of(bytes[2]);
	out->ndim = bytes[3];
	if (!out->dtype || !out->ndim || out->ndim > IDX_DIMS_MAX) {
		snprintf(why, why_bytes, "type 0x%02x and %u axes; must be type 0x08 to 0x0e and 1 to %d axes",
			 bytes[2], bytes[3], IDX_DIMS_MAX);
		return false;
	}
	out->data_offset = 4 + 4 * (uint64_t)out->ndim;
	if (size < out->data_offset) {
		snprintf(why, why_bytes, "ends at offset %zu, within the head of %" PRIu64 " bytes", size,
			 out->data_offset);
		return false;
	}
	out->data_bytes = shard_dtype_bytes(out->dtype);
	for (uint32_t i = 0; i < out->ndim; i++) {
		const uint8_t *b = bytes + 4 + 4 * (size_t)i;

		out->shape[i] = (uint64_t)b[0] << 24 | (uint64_t)b[1] << 16 | (uint64_t)b[2] << 8 | b[3];
		if (out->shape[i] && out->data_bytes > (UINT64_C(1) << 60) / out->shape[i]) {
			snprintf(why, why_bytes, "the axes ask for more than 2^60 bytes");
			return false;
		}
		out->data_bytes *= out->shape[i];
	}
	return true;
}
