/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.c - I45 and I51 to I56 of format/SHARD.md: what the sections' tables say
 *
 * Callers checked the table's hash (I43) where they were told to; nothing here relies on it,
 * because a hostile table has the right hash.
 */
#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/utf8.h"
#include "libshard/format/format.h"

int chunk_decode(const struct pages *p, const struct shard_schema *schema, uint32_t group, uint64_t idx,
		 const struct disk_chunk *entry, const struct disk_chunk *previous, struct chunk *out,
		 struct shard_error *err)
{
	const struct section *data = pages_find(p, SHARD_SECTION_DATA, group);
	const struct shard_group *g = &schema->group[group];
	uint64_t first = idx * g->chunk_records, records = min_u64(g->chunk_records, p->record_count - first);
	uint64_t end = data->offset + data->bytes, offset = load64(entry->offset.b), start = data->offset, after;
	uint32_t stored = load32(entry->stored_bytes.b), flags = load32(entry->flags.b);
	uint32_t decoded = (uint32_t)(records * g->stride); /* at most 2^26, I22 */
	bool last = first + records == p->record_count, good;

	if (previous) {
		uint64_t before = load64(previous->offset.b);

		start = before <= end ? align_up(before + load32(previous->stored_bytes.b), SHARD_CHUNK_ALIGN) : 0;
	}
	good = offset == start && offset >= data->offset && offset < end && flags <= 1 && stored >= 1 &&
	       first_nonzero(entry->reserved, sizeof(entry->reserved)) == sizeof(entry->reserved) &&
	       (flags ? stored < decoded && decoded <= (uint64_t)SHARD_LZ4_EXPANSION_MAX * stored : stored == decoded);
	after = good ? align_up(offset + stored, SHARD_CHUNK_ALIGN) : 0;
	MUST("I45", good && (last ? after == end : after < end),
	     "chunk %" PRIu64 " of group %u: offset %" PRIu64 ", %u stored bytes, flags %u; offset must be %" PRIu64
	     ", flags 0 (raw, %u bytes) or 1 (LZ4, fewer bytes, 1/255 or more), and the last chunk must end at "
	     "%" PRIu64,
	     idx, group, offset, stored, flags, start, decoded, end);
	out->offset = offset;
	out->stored_hash = load64(entry->stored_hash.b);
	out->stored_bytes = stored;
	out->padded_bytes = (uint32_t)align_up(stored, SHARD_CHUNK_ALIGN);
	out->decoded_bytes = decoded;
	out->is_lz4 = flags;
	return SHARD_OK;
}

int keys_check_offsets(const uint8_t *koff, uint64_t record_count, uint64_t kblb_bytes, struct shard_error *err)
{
	uint64_t at = load64(koff);

	MUST("I51", at == 0, "KOFF starts at %" PRIu64 "; must be 0", at);
	for (uint64_t i = 1; i <= record_count; i++) {
		uint64_t next = load64(koff + 8 * i);

		MUST("I51", next >= at && next - at <= SHARD_KEY_BYTES_MAX,
		     "key %" PRIu64 " goes from %" PRIu64 " to %" PRIu64 "; must not descend, and must have at most "
		     "%d bytes",
		     i - 1, at, next, SHARD_KEY_BYTES_MAX);
		at = next;
	}
	MUST("I51", at == kblb_bytes, "KOFF ends at %" PRIu64 "; must be the %" PRIu64 " bytes of KBLB", at,
	     kblb_bytes);
	return SHARD_OK;
}

int key_find(const uint8_t *koff, uint64_t idx, uint64_t kblb_bytes, uint64_t *offset, uint32_t *bytes,
	     struct shard_error *err)
{
	uint64_t at = load64(koff + 8 * idx), next = load64(koff + 8 * (idx + 1));

	MUST("I51", at <= next && next <= kblb_bytes && next - at <= SHARD_KEY_BYTES_MAX,
	     "key %" PRIu64 " goes from %" PRIu64 " to %" PRIu64 "; must not descend, must end within %" PRIu64 ", "
	     "and must have at most %d bytes",
	     idx, at, next, kblb_bytes, SHARD_KEY_BYTES_MAX);
	*offset = at;
	*bytes = (uint32_t)(next - at);
	return SHARD_OK;
}

int keys_check_text(const uint8_t *koff, const uint8_t *kblb, uint64_t kblb_bytes, uint64_t record_count,
		    struct shard_error *err)
{
	for (uint64_t i = 0; i < record_count; i++) {
		uint64_t at = load64(koff + 8 * i), next = load64(koff + 8 * (i + 1)), bytes = next - at;
		size_t bad;

		if (at > next || next > kblb_bytes)
			continue; /* I51 refused it; nothing is read out of bounds, whatever came before */
		bad = utf8_bad_or_nul(kblb + at, bytes);

		MUST("I52", bad == bytes, "key %" PRIu64 ": byte %zu is 0x%02x, which is not UTF-8 text", i, bad,
		     kblb[at + bad]);
	}
	return SHARD_OK;
}

static int check_moments(const struct shard_field *f, uint32_t field, const uint8_t *items, uint64_t records,
			 struct shard_error *err)
{
	uint64_t channels = schema_channels(f);

	for (uint64_t c = 0; c < channels; c++, items += sizeof(struct disk_moments)) {
		const struct shard_moments m = {load64(items), load64(items + 8), load64(items + 16), 0};

		MUST("I54", schema_moments_possible(f, records, &m),
		     "moments of field %u, channel %" PRIu64 ": count %" PRIu64 ", sum %" PRIu64
		     ", sum of squares %" PRIu64 "; count must be %" PRIu64 " and the sums possible for u8",
		     field, c, m.count, m.sum, m.sum_squares_low, schema_elements(f) / channels * records);
	}
	return SHARD_OK;
}

static int check_classes(uint32_t field, const uint8_t *items, uint64_t classes, uint64_t records,
			 struct shard_error *err)
{
	uint64_t sum = 0;
	bool fits = true;

	for (uint64_t c = 0; c < classes; c++)
		fits = fits && add_fits(sum, load64(items + 8 * c), &sum);
	MUST("I54", fits && sum == records,
	     "class counts of field %u add up to %" PRIu64 "; there are %" PRIu64 " records", field, sum, records);
	return SHARD_OK;
}

int stat_check(const struct shard_schema *s, const uint8_t *stat, uint64_t bytes, uint64_t blocks, uint64_t records,
	       struct shard_error *err)
{
	uint64_t at = 0, before = 0, count = 0;
	int rc;

	while (at < bytes) { /* every turn takes 16 bytes or more */
		uint64_t left = bytes - at, items, item_bytes, place;
		uint32_t kind, field;
		bool moments, good = left >= sizeof(struct disk_stat_block);

		kind = good ? load32(stat + at) : 0;
		field = good ? load32(stat + at + 4) : 0;
		items = good ? load64(stat + at + 8) : 0;
		moments = kind == SHARD_STAT_MOMENTS;
		item_bytes = moments ? sizeof(struct disk_moments) : 8;
		place = (uint64_t)kind << 32 | field;
		good = good && place > before && field < s->field_count && schema_has_stat(&s->field[field], kind) &&
		       (moments ? items == schema_channels(&s->field[field]) : items <= SHARD_CLASSES_MAX) &&
		       items * item_bytes <= left - sizeof(struct disk_stat_block);
		MUST("I53", good,
		     "STAT block %" PRIu64 ": kind %u of field %u with %" PRIu64
		     " items is unknown, out of order, not for that field, or passes the section's end",
		     count, kind, field, items);
		if (!good)
			return SHARD_OK; /* only if the check above was taken out: what follows cannot be read */
		at += sizeof(struct disk_stat_block);
		rc = moments ? check_moments(&s->field[field], field, stat + at, records, err)
			     : check_classes(field, stat + at, items, records, err);
		if (rc)
			return rc;
		at += items * item_bytes;
		before = place;
		count++;
	}
	MUST("I53", count == blocks, "STAT has %" PRIu64 " blocks; its entry says %" PRIu64, count, blocks);
	return SHARD_OK;
}

const uint8_t *stat_find(const uint8_t *stat, uint64_t bytes, uint32_t kind, uint32_t field, uint64_t *items)
{
	uint64_t at = 0;

	while (bytes - at >= sizeof(struct disk_stat_block)) {
		uint64_t n = load64(stat + at + 8), item_bytes = load32(stat + at) == SHARD_STAT_MOMENTS ? 24 : 8, size;

		at += sizeof(struct disk_stat_block);
		if (!mul_fits(n, item_bytes, &size) || size > bytes - at)
			return NULL;
		if (load32(stat + at - 16) == kind && load32(stat + at - 12) == field) {
			*items = n;
			return stat + at;
		}
		at += size;
	}
	return NULL;
}

int miss_check(const uint8_t *miss, uint64_t items, uint64_t record_count, uint64_t planned_records,
	       struct shard_error *err)
{
	for (uint64_t i = 0; i < items; i++) {
		const uint8_t *m = miss + 16 * i;
		uint32_t reason = load32(m + 8), how = load32(m + 12);

		MUST("I55",
		     (!i || load64(m) > load64(m - 16)) && reason >= 1 && reason <= 65535 && (how == 1 || how == 2),
		     "MISS entry %" PRIu64 ": ordinal %" PRIu64 ", reason %u, how %u; ordinals must ascend, reason "
		     "must be 1 to 65535, how must be 1 or 2",
		     i, load64(m), reason, how);
	}
	MUST("I55", items <= planned_records - record_count,
	     "%" PRIu64 " records and %" PRIu64 " inputs left out are more than the %" PRIu64 " planned", record_count,
	     items, planned_records);
	return SHARD_OK;
}

int provenance_check(const uint8_t *text, uint64_t bytes, struct shard_error *err)
{
	size_t bad = utf8_bad_or_nul(text, bytes);

	MUST("I56", bad == bytes, "provenance: byte %zu is 0x%02x, which is not UTF-8 text", bad, text[bad]);
	return SHARD_OK;
}
