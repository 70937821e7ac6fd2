/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages_decode.c - I1 to I17 of format/SHARD.md, and the way from page to struct
 *
 * Pure.  The order of the checks is that of their numbers: damage is found (I1 to I5) before
 * anything that the page says is believed, so that a flipped version bit is "corrupt" and not
 * "unsupported".
 */
#include "libshard/format/pages_decode.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/format/format.h"
#include "libshard/format/invariant.h"
#include "libshard/format/schema.h"

int pages_check_size(uint64_t file_bytes, struct shard_error *err)
{
	MUST("I1",
	     file_bytes >= 2 * SHARD_PAGE_BYTES && file_bytes % SHARD_PAGE_BYTES == 0 &&
		     file_bytes <= SHARD_FILE_BYTES_MAX,
	     "the file has %" PRIu64 " bytes; a shard is a multiple of 4096, from 8192 to %" PRIu64
	     " (is it cut short, or no shard?)",
	     file_bytes, SHARD_FILE_BYTES_MAX);
	return SHARD_OK;
}

static int check_magic_and_hash(const struct disk_header *h, const uint8_t header_hash[16], const struct disk_footer *f,
				const uint8_t footer_hash[16], struct shard_error *err)
{
	MUST("I2", !memcmp(h->magic, SHARD_HEADER_MAGIC, sizeof(h->magic)),
	     "the file begins with %02x %02x %02x %02x, not with the magic of a shard", h->magic[0], h->magic[1],
	     h->magic[2], h->magic[3]);
	MUST("I3", !memcmp(h->hash, header_hash, sizeof(h->hash)),
	     "the hash of the header page (bytes 0 to 4095) is wrong: the page is damaged");
	MUST_OR(SHARD_E_UNSUPPORTED, "I7", load16(h->major.b) == SHARD_FORMAT_MAJOR,
		"the shard is of version %u; this library reads version %d", load16(h->major.b), SHARD_FORMAT_MAJOR);
	MUST("I4", !memcmp(f->magic, SHARD_FOOTER_MAGIC, sizeof(f->magic)),
	     "the last page begins with %02x %02x %02x %02x, not with the magic of a footer (is the file cut short?)",
	     f->magic[0], f->magic[1], f->magic[2], f->magic[3]);
	MUST("I5", !memcmp(f->hash, footer_hash, sizeof(f->hash)),
	     "the hash of the footer page (the last 4096 bytes) is wrong: the page is damaged");
	return SHARD_OK;
}

static int check_identity(const struct disk_header *h, const struct disk_footer *f, uint64_t file_bytes,
			  struct shard_error *err)
{
	uint16_t major = load16(h->major.b), foot_major = load16(f->major.b);
	uint16_t minor = load16(h->minor.b), foot_minor = load16(f->minor.b);
	bool one = major == SHARD_FORMAT_MAJOR && foot_major == SHARD_FORMAT_MAJOR;

	MUST("I6", load64(h->endian_tag.b) == SHARD_ENDIAN_TAG, "the endian tag is %016" PRIx64 "; must be %016" PRIx64,
	     load64(h->endian_tag.b), SHARD_ENDIAN_TAG);
	MUST_OR(one ? SHARD_E_CORRUPT : SHARD_E_UNSUPPORTED, "I7",
		one && minor == foot_minor && load32(h->page_bytes.b) == SHARD_PAGE_BYTES &&
			load32(f->page_bytes.b) == SHARD_PAGE_BYTES,
		"header and footer say version %u.%u and %u.%u, pages of %u and %u bytes; this library reads version "
		"%d, pages of 4096",
		major, minor, foot_major, foot_minor, load32(h->page_bytes.b), load32(f->page_bytes.b),
		SHARD_FORMAT_MAJOR);
	MUST("I8", load64(f->file_bytes.b) == file_bytes, "the footer says %" PRIu64 " bytes, the file has %" PRIu64,
	     load64(f->file_bytes.b), file_bytes);
	MUST("I9", !memcmp(f->header_hash, h->hash, sizeof(h->hash)),
	     "the footer belongs to another header page: the hash of the header that it holds differs");
	MUST_OR(SHARD_E_UNSUPPORTED, "I10", !(load64(h->incompat.b) & ~SHARD_KNOWN_INCOMPAT),
		"feature bits 0x%" PRIx64 " need a newer library; this one knows 0x%" PRIx64, load64(h->incompat.b),
		SHARD_KNOWN_INCOMPAT);
	MUST_OR(SHARD_E_UNSUPPORTED, "I12",
		load16(h->leaf_hash.b) == SHARD_HASH_XXH3 && load16(h->table_hash.b) == SHARD_HASH_XXH3,
		"leaf hash %u and table hash %u; this library knows 1 (XXH3)", load16(h->leaf_hash.b),
		load16(h->table_hash.b));
	return SHARD_OK;
}

static bool zero(const void *p, size_t bytes)
{
	return first_nonzero(p, bytes) == bytes;
}

/* Counts above the tables' sizes leave no unused slots to look at; I14 refuses them next. */
static uint32_t used(le32 count, uint32_t slots)
{
	uint32_t n = load32(count.b);

	return n < slots ? n : slots;
}

static bool header_reserved_zero(const struct disk_header *h)
{
	uint32_t groups = used(h->group_count, SHARD_GROUPS_MAX), fields = used(h->field_count, SHARD_FIELDS_MAX);
	bool good = zero(h->reserved0, sizeof(h->reserved0)) && zero(h->reserved1, sizeof(h->reserved1)) &&
		    zero(h->reserved2, sizeof(h->reserved2)) &&
		    zero(&h->group[groups], (SHARD_GROUPS_MAX - groups) * sizeof(h->group[0])) &&
		    zero(&h->field[fields], (SHARD_FIELDS_MAX - fields) * sizeof(h->field[0]));

	for (uint32_t i = 0; i < groups; i++)
		good = good && zero(h->group[i].reserved, sizeof(h->group[i].reserved));
	for (uint32_t i = 0; i < fields; i++)
		good = good && zero(h->field[i].reserved, sizeof(h->field[i].reserved));
	return good;
}

static bool footer_reserved_zero(const struct disk_footer *f)
{
	uint32_t sections = used(f->section_count, SHARD_SECTIONS_MAX);
	bool good = zero(f->reserved0, sizeof(f->reserved0)) && zero(f->reserved1, sizeof(f->reserved1)) &&
		    zero(f->reserved2, sizeof(f->reserved2)) &&
		    zero(&f->section[sections], (SHARD_SECTIONS_MAX - sections) * sizeof(f->section[0]));

	for (uint32_t i = 0; i < sections; i++) {
		const struct disk_section_entry *e = &f->section[i];

		good = good && zero(e->reserved0, sizeof(e->reserved0)) && zero(e->reserved1, sizeof(e->reserved1)) &&
		       !(load32(e->flags.b) & ~SHARD_SECTION_CRITICAL) &&
		       (load32(e->type.b) != SHARD_SECTION_DATA || zero(e->hash, sizeof(e->hash)));
	}
	return good;
}

static int check_counts(const struct disk_header *h, const struct disk_footer *f, struct shard_error *err)
{
	uint32_t groups = load32(h->group_count.b), fields = load32(h->field_count.b),
		 sections = load32(f->section_count.b);
	uint64_t planned = load64(h->planned_records.b), records = load64(f->record_count.b);

	MUST("I13", header_reserved_zero(h), "the header page holds non-zero bytes where the format reserves zero");
	MUST("I13", footer_reserved_zero(f), "the footer page holds non-zero bytes where the format reserves zero");
	MUST("I14",
	     groups >= 1 && groups <= SHARD_GROUPS_MAX && fields >= 1 && fields <= SHARD_FIELDS_MAX &&
		     sections <= SHARD_SECTIONS_MAX,
	     "%u groups, %u fields, %u sections; must be 1 to %d, 1 to %d, at most %u", groups, fields, sections,
	     SHARD_GROUPS_MAX, SHARD_FIELDS_MAX, SHARD_SECTIONS_MAX);
	MUST("I15", load32(h->section_align_log2.b) >= 12 && load32(h->section_align_log2.b) <= 21,
	     "section align log2 is %u; must be 12 to 21", load32(h->section_align_log2.b));
	MUST("I16", planned <= SHARD_RECORDS_MAX, "%" PRIu64 " records planned; must be at most %" PRIu64, planned,
	     SHARD_RECORDS_MAX);
	MUST("I17", records <= planned, "%" PRIu64 " records, but only %" PRIu64 " were planned", records, planned);
	return SHARD_OK;
}

static void decode_schema(struct shard_schema *s, const struct disk_header *h)
{
	s->group_count = load32(h->group_count.b);
	s->field_count = load32(h->field_count.b);
	for (uint32_t i = 0; i < s->group_count; i++) {
		const struct disk_group *d = &h->group[i];

		s->group[i] = (struct shard_group){
			.codec = load32(d->codec.b),
			.align_log2 = load32(d->align_log2.b),
			.unit_records = load32(d->unit_records.b),
			.chunk_records = load32(d->chunk_records.b),
			.record_bytes = load64(d->record_bytes.b),
			.stride = load64(d->stride.b),
		};
	}
	for (uint32_t i = 0; i < s->field_count; i++) {
		const struct disk_field *d = &h->field[i];
		struct shard_field *f = &s->field[i];

		memcpy(f->name, d->name, sizeof(f->name));
		f->dtype = load16(d->dtype.b);
		f->kind = d->kind;
		f->layout = load16(d->layout.b);
		f->semantic = load16(d->semantic.b);
		f->group = load16(d->group.b);
		f->ndim = d->ndim;
		for (uint32_t k = 0; k < SHARD_DIMS_MAX; k++)
			f->shape[k] = load32(d->shape[k].b);
		f->ragged_axes = d->ragged_axes;
		f->length_field = d->length_field;
		f->offset = load64(d->offset.b);
		f->bytes = load64(d->bytes.b);
		f->stride = f->group < s->group_count ? s->group[f->group].stride : 0;
	}
}

static void decode_rest(struct pages *out, const struct disk_header *h, const struct disk_footer *f)
{
	out->major = load16(h->major.b);
	out->minor = load16(h->minor.b);
	out->incompat = load64(h->incompat.b);
	out->compat = load64(h->compat.b);
	out->planned_records = load64(h->planned_records.b);
	out->plan_shard = load64(h->plan_shard.b);
	out->section_align_log2 = load32(h->section_align_log2.b);
	memcpy(out->plan_digest, h->plan_digest, sizeof(out->plan_digest));
	memcpy(out->header_hash, h->hash, sizeof(out->header_hash));
	out->record_count = load64(f->record_count.b);
	out->file_bytes = load64(f->file_bytes.b);
	out->section_count = load32(f->section_count.b);
	memcpy(out->root, f->hash, sizeof(out->root));
	for (uint32_t i = 0; i < out->section_count; i++) {
		const struct disk_section_entry *e = &f->section[i];

		out->section[i] = (struct section){
			.type = load32(e->type.b),
			.flags = load32(e->flags.b),
			.group = load32(e->group.b),
			.offset = load64(e->offset.b),
			.bytes = load64(e->bytes.b),
			.items = load64(e->items.b),
		};
		memcpy(out->section[i].hash, e->hash, sizeof(e->hash));
	}
}

int pages_decode(struct pages *out, const struct disk_header *header, const uint8_t header_hash[16],
		 const struct disk_footer *footer, const uint8_t footer_hash[16], uint64_t file_bytes,
		 struct shard_error *err)
{
	int rc = check_magic_and_hash(header, header_hash, footer, footer_hash, err);

	if (!rc)
		rc = check_identity(header, footer, file_bytes, err);
	if (!rc)
		rc = check_counts(header, footer, err);
	if (rc)
		return rc;
	memset(out, 0, sizeof(*out));
	decode_schema(&out->schema, header);
	decode_rest(out, header, footer);
	out->file_bytes = file_bytes;
	rc = schema_check(&out->schema, err);
	if (!rc)
		rc = sections_check(out, err);
	return rc;
}

int pages_check_compat(const struct pages *p, struct shard_error *err)
{
	MUST_OR(SHARD_E_UNSUPPORTED, "I11", !(p->compat & ~SHARD_KNOWN_COMPAT),
		"feature bits 0x%" PRIx64 " are from a newer library; this one can read the shard, but not verify it",
		p->compat);
	return SHARD_OK;
}
