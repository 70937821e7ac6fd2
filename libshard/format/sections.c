/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sections.c - I34 to I42 of format/SHARD.md: the section table
 *
 * Pure.  Sums cannot wrap: offsets and lengths are held below the file size (2^44) before they are
 * added, and counts below 2^40 with strides of 2^30 are multiplied with a check.
 */
#include "libshard/format/format.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/format/invariant.h"
#include "shard_pack.h"

static bool per_group(uint32_t type)
{
	return type >= SHARD_SECTION_DATA && type <= SHARD_SECTION_CIDX;
}

static int check_types(const struct pages *p, struct shard_error *err)
{
	for (uint32_t i = 0; i < p->section_count; i++) {
		const struct section *s = &p->section[i];
		bool known = s->type >= SHARD_SECTION_DATA && s->type <= SHARD_SECTION_PROV;

		MUST_OR(SHARD_E_UNSUPPORTED, "I34", known || !(s->flags & SHARD_SECTION_CRITICAL),
			"section %u has type %u, which this version does not know and must not ignore", i, s->type);
	}
	for (uint32_t i = 0; i < p->section_count; i++) {
		const struct section *s = &p->section[i];
		bool ascends = !i || s->type > s[-1].type || (s->type == s[-1].type && s->group > s[-1].group);

		MUST("I35", ascends && (per_group(s->type) ? s->group < p->schema.group_count : s->group == 0),
		     "section %u: type %u of group %u is out of order, repeated, or of a group that does not exist", i,
		     s->type, s->group);
	}
	return SHARD_OK;
}

static int check_presence(const struct pages *p, struct shard_error *err)
{
	for (uint32_t g = 0; g < p->schema.group_count; g++) {
		bool compressed = p->schema.group[g].codec != SHARD_RAW;
		bool has_index = pages_find(p, SHARD_SECTION_CIDX, g);

		MUST("I36",
		     pages_find(p, SHARD_SECTION_DATA, g) && pages_find(p, SHARD_SECTION_HASH, g) &&
			     compressed == has_index,
		     "group %u is %s, so it must have sections DATA and HASH, and %s CIDX", g,
		     compressed ? "compressed" : "raw", compressed ? "also" : "no");
	}
	MUST("I36", !pages_find(p, SHARD_SECTION_KOFF, 0) == !pages_find(p, SHARD_SECTION_KBLB, 0),
	     "only one of the sections KOFF and KBLB exists; must be both or neither");
	return SHARD_OK;
}

static int check_places(const struct pages *p, struct shard_error *err)
{
	uint64_t end = SHARD_PAGE_BYTES, footer = p->file_bytes - SHARD_PAGE_BYTES;

	for (uint32_t i = 0; i < p->section_count; i++) {
		const struct section *s = &p->section[i];
		uint64_t start = pages_section_start(p->section_align_log2, end);

		MUST("I37", s->offset == start && start <= footer && s->bytes <= footer - start,
		     "section %u (%s of group %u) lies at %" PRIu64 " with %" PRIu64 " bytes; must lie at %" PRIu64
		     " and end before the footer at %" PRIu64,
		     i, shard_section_name(s->type), s->group, s->offset, s->bytes, start, footer);
		end = s->offset + s->bytes;
	}
	MUST("I37", end <= footer && footer - end < SHARD_PAGE_BYTES,
	     "the last section ends at %" PRIu64 "; must end less than 4096 bytes before the footer at %" PRIu64, end,
	     footer);
	return SHARD_OK;
}

typedef int table_check(const struct pages *p, uint32_t g, struct shard_error *err);

static int check_data(const struct pages *p, uint32_t g, struct shard_error *err)
{
	const struct shard_group *group = &p->schema.group[g];
	const struct section *data = pages_find(p, SHARD_SECTION_DATA, g);
	uint64_t bytes = 0;
	bool fits = mul_fits(p->record_count, group->stride, &bytes);

	if (data)
		MUST("I38",
		     data->items == p->record_count && (group->codec != SHARD_RAW || (fits && data->bytes == bytes)),
		     "DATA of group %u has %" PRIu64 " items in %" PRIu64 " bytes; %" PRIu64 " records make %" PRIu64
		     "%s",
		     g, data->items, data->bytes, p->record_count, bytes,
		     group->codec == SHARD_RAW ? " bytes" : " before compression");
	return SHARD_OK;
}

static int check_hash(const struct pages *p, uint32_t g, struct shard_error *err)
{
	const struct section *hash = pages_find(p, SHARD_SECTION_HASH, g);
	uint64_t units = ceil_div(p->record_count, p->schema.group[g].unit_records);

	if (hash)
		MUST("I39", hash->items == units && hash->bytes == 8 * units,
		     "HASH of group %u has %" PRIu64 " items in %" PRIu64 " bytes; must be %" PRIu64 " items of "
		     "8 bytes",
		     g, hash->items, hash->bytes, units);
	return SHARD_OK;
}

static int check_index(const struct pages *p, uint32_t g, struct shard_error *err)
{
	const struct section *index = pages_find(p, SHARD_SECTION_CIDX, g);
	uint64_t units = ceil_div(p->record_count, p->schema.group[g].unit_records);

	if (index)
		MUST("I40", index->items == units && index->bytes == 32 * units,
		     "CIDX of group %u has %" PRIu64 " items in %" PRIu64 " bytes; must be %" PRIu64 " items of "
		     "32 bytes",
		     g, index->items, index->bytes, units);
	return SHARD_OK;
}

static int check_shared_tables(const struct pages *p, struct shard_error *err)
{
	const struct section *koff = pages_find(p, SHARD_SECTION_KOFF, 0), *kblb = pages_find(p, SHARD_SECTION_KBLB, 0);
	const struct section *miss = pages_find(p, SHARD_SECTION_MISS, 0), *prov = pages_find(p, SHARD_SECTION_PROV, 0);

	if (koff)
		MUST("I41", koff->items == p->record_count + 1 && koff->bytes == 8 * koff->items,
		     "KOFF has %" PRIu64 " items in %" PRIu64 " bytes; must be %" PRIu64 " items of 8 bytes",
		     koff->items, koff->bytes, p->record_count + 1);
	if (kblb)
		MUST("I41", kblb->items == p->record_count, "KBLB has %" PRIu64 " items; must be %" PRIu64, kblb->items,
		     p->record_count);
	if (miss)
		MUST("I42", miss->items <= SHARD_RECORDS_MAX && miss->bytes == 16 * miss->items,
		     "MISS has %" PRIu64 " items in %" PRIu64 " bytes; must be items of 16 bytes", miss->items,
		     miss->bytes);
	if (prov)
		MUST("I42", prov->items == 1 && prov->bytes <= SHARD_PROVENANCE_BYTES_MAX,
		     "PROV has %" PRIu64 " items in %" PRIu64 " bytes; must be 1 item of at most %" PRIu64 " bytes",
		     prov->items, prov->bytes, SHARD_PROVENANCE_BYTES_MAX);
	return SHARD_OK;
}

int sections_check(const struct pages *p, struct shard_error *err)
{
	static table_check *const checks[] = {check_data, check_hash, check_index};
	int rc = check_types(p, err);

	if (!rc)
		rc = check_presence(p, err);
	if (!rc)
		rc = check_places(p, err);
	for (size_t c = 0; c < sizeof(checks) / sizeof(checks[0]); c++)
		for (uint32_t g = 0; !rc && g < p->schema.group_count; g++)
			rc = checks[c](p, g, err);
	if (!rc)
		rc = check_shared_tables(p, err);
	return rc;
}
