/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_text.c - numbers to the lines of a manifest, and the names in it
 *
 * Pure.  The reverse of manifest_parse.c.
 */
#include "libshard/format/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/digits.h"
#include "shard_pack.h"

bool manifest_name_good(const char *name, size_t bytes)
{
	size_t components = 1, length = 0;

	for (size_t i = 0; i < bytes; i++) {
		char c = name[i];

		if (c == '/') {
			if (!length || ++components > 2)
				return false;
			length = 0;
			continue;
		}
		if (!percent_is_plain(c, false) || c == '~' || ++length > 200 ||
		    (length == 1 && (c == '.' || c == '-')))
			return false;
	}
	return length > 0;
}

void manifest_hash_text(char out[33], const uint8_t hash[16])
{
	uint8_t high_first[16];

	for (int i = 0; i < 16; i++)
		high_first[i] = hash[15 - i];
	hex_from_bytes(out, high_first, 16);
}

size_t manifest_write_group(char *out, const struct shard_schema *s, uint32_t group)
{
	const struct shard_group *g = &s->group[group];

	return (size_t)snprintf(out, SHARD_MANIFEST_LINE_BYTES_MAX,
				"group %u stride %" PRIu64 " record %" PRIu64 " align %u codec %s unit %u chunk %u\n",
				group, g->stride, g->record_bytes, g->align_log2, shard_codec_name(g->codec),
				g->unit_records, g->chunk_records);
}

/* "3,4,5" of the values whose bit is set, "-" for none. */
static void list(char out[128], const uint32_t *value, uint32_t count)
{
	int used = snprintf(out, 128, count ? "" : "-");

	for (uint32_t i = 0; i < count; i++)
		used += snprintf(out + used, 128 - (size_t)used, i ? ",%u" : "%u", value[i]);
}

size_t manifest_write_field(char *out, const struct shard_schema *s, uint32_t field)
{
	const struct shard_field *f = &s->field[field];
	uint32_t axis[SHARD_DIMS_MAX], axes = 0;
	char shape[128], ragged[128], length[16] = "-";

	for (uint32_t d = 0; d < SHARD_DIMS_MAX; d++)
		if (f->ragged_axes >> d & 1)
			axis[axes++] = d;
	list(shape, f->shape, f->ndim);
	list(ragged, axis, axes);
	if (axes)
		snprintf(length, sizeof(length), "%u", f->length_field);
	return (size_t)snprintf(out, SHARD_MANIFEST_LINE_BYTES_MAX,
				"field %u %s group %u kind %s dtype %s layout %s semantic %s offset %" PRIu64
				" bytes %" PRIu64 " shape %s axes %s length %s\n",
				field, f->name, f->group, shard_kind_name(f->kind), shard_dtype_name(f->dtype),
				shard_layout_name(f->layout), shard_semantic_name(f->semantic), f->offset, f->bytes,
				shape, ragged, length);
}

size_t manifest_write_moments(char *out, uint32_t field, uint32_t channel, const struct shard_moments *m)
{
	unsigned __int128 v = (unsigned __int128)m->sum_squares_high << 64 | m->sum_squares_low;
	char digits[40];
	size_t at = sizeof(digits) - 1;

	digits[at] = 0;
	do {
		digits[--at] = (char)('0' + (int)(v % 10));
		v /= 10;
	} while (v);
	return (size_t)snprintf(out, SHARD_MANIFEST_LINE_BYTES_MAX, "stat moments %u %u %" PRIu64 " %" PRIu64 " %s\n",
				field, channel, m->count, m->sum, digits + at);
}

size_t manifest_write_shard(char *out, uint64_t idx, const struct manifest_shard *s)
{
	char root[33], sha256[65];

	manifest_hash_text(root, s->root);
	hex_from_bytes(sha256, s->sha256, 32);
	return (size_t)snprintf(out, SHARD_MANIFEST_LINE_BYTES_MAX,
				"shard %" PRIu64 " %.*s bytes %" PRIu64 " records %" PRIu64 " root %s sha256 %s\n", idx,
				(int)s->file_name_bytes, s->file, s->file_bytes, s->record_count, root, sha256);
}
