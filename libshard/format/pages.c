/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.c - I1 to I42 of format/SHARD.md: the header and the footer page to a struct, and back
 *
 * The order of the checks is that of their numbers: damage is found (I1 to I5) before
 * anything that the page says is believed, so that a flipped version bit is "corrupt" and not
 * "unsupported".
 */
#include "libshard/format/format.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "shard_inspect.h"

const struct section *pages_find(const struct pages *p, uint32_t type, uint32_t group)
{
	for (uint32_t i = 0; i < p->section_count; i++)
		if (p->section[i].type == type && p->section[i].group == group)
			return &p->section[i];
	return NULL;
}

uint64_t pages_section_start(uint32_t section_align_log2, uint64_t end)
{
	return align_up(end, UINT64_C(1) << section_align_log2);
}

/* ---- I34 to I42: the section table ---- */

/*
 * Sums cannot wrap: offsets and lengths are held below the file size (2^44) before they are
 * added, and counts below 2^40 with strides of 2^30 are multiplied with a check.
 */

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
		bool per_group = s->type >= SHARD_SECTION_DATA && s->type <= SHARD_SECTION_CIDX;

		MUST("I35", ascends && (per_group ? s->group < p->schema.group_count : s->group == 0),
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
		     i, section_name(s->type), s->group, s->offset, s->bytes, start, footer);
		end = s->offset + s->bytes;
	}
	MUST("I37", end <= footer && footer - end < SHARD_PAGE_BYTES,
	     "the last section ends at %" PRIu64 "; must end less than 4096 bytes before the footer at %" PRIu64, end,
	     footer);
	return SHARD_OK;
}

/* I36 has checked which sections there are: a raw group has no CIDX. */
static int check_group_tables(const struct pages *p, struct shard_error *err)
{
	static const struct {
		const char *number;
		uint32_t type, item_bytes;
	} of_units[] = {{"I39", SHARD_SECTION_HASH, 8}, {"I40", SHARD_SECTION_CIDX, sizeof(struct disk_chunk)}};

	for (uint32_t g = 0; g < p->schema.group_count; g++) {
		const struct shard_group *group = &p->schema.group[g];
		const struct section *data = pages_find(p, SHARD_SECTION_DATA, g);
		uint64_t bytes = 0;
		bool fits = mul_fits(p->record_count, group->stride, &bytes);

		if (!data)
			continue;
		MUST("I38",
		     data->items == p->record_count && (group->codec != SHARD_RAW || (fits && data->bytes == bytes)),
		     "DATA of group %u has %" PRIu64 " items in %" PRIu64 " bytes; %" PRIu64 " records make %" PRIu64
		     "%s",
		     g, data->items, data->bytes, p->record_count, bytes,
		     group->codec == SHARD_RAW ? " bytes" : " before compression");
	}
	for (size_t t = 0; t < sizeof(of_units) / sizeof(of_units[0]); t++)
		for (uint32_t g = 0; g < p->schema.group_count; g++) {
			const struct section *s = pages_find(p, of_units[t].type, g);
			uint64_t units = ceil_div(p->record_count, p->schema.group[g].unit_records);

			if (!s)
				continue;
			MUST(of_units[t].number, s->items == units && s->bytes == of_units[t].item_bytes * units,
			     "%s of group %u has %" PRIu64 " items in %" PRIu64 " bytes; must be %" PRIu64
			     " items of %u bytes",
			     section_name(s->type), g, s->items, s->bytes, units, of_units[t].item_bytes);
		}
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

/* ---- I1 to I17, and the way from page to struct ---- */

int pages_check_size(uint64_t file_bytes, struct shard_error *err)
{
	MUST("I1",
	     file_bytes >= 2 * SHARD_PAGE_BYTES && file_bytes % SHARD_PAGE_BYTES == 0 &&
		     file_bytes <= SHARD_FILE_BYTES_MAX,
	     "the file has %" PRIu64 " bytes; a shard is a multiple of 4096, from 8192 to %" PRIu64
	     " (is it cut short, or not a shard?)",
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
	out->major = load16(header->major.b);
	out->minor = load16(header->minor.b);
	out->incompat = load64(header->incompat.b);
	out->compat = load64(header->compat.b);
	out->planned_records = load64(header->planned_records.b);
	out->plan_shard = load64(header->plan_shard.b);
	out->section_align_log2 = load32(header->section_align_log2.b);
	memcpy(out->plan_digest, header->plan_digest, sizeof(out->plan_digest));
	memcpy(out->header_hash, header->hash, sizeof(out->header_hash));
	decode_schema(&out->schema, header);
	out->record_count = load64(footer->record_count.b);
	out->file_bytes = file_bytes;
	out->section_count = load32(footer->section_count.b);
	memcpy(out->root, footer->hash, sizeof(out->root));
	for (uint32_t i = 0; i < out->section_count; i++) {
		const struct disk_section_entry *e = &footer->section[i];

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
	rc = schema_check(&out->schema, err);
	if (!rc)
		rc = check_types(out, err);
	if (!rc)
		rc = check_presence(out, err);
	if (!rc)
		rc = check_places(out, err);
	if (!rc)
		rc = check_group_tables(out, err);
	if (!rc)
		rc = check_shared_tables(out, err);
	return rc;
}

int pages_check_compat(const struct pages *p, struct shard_error *err)
{
	MUST_OR(SHARD_E_UNSUPPORTED, "I11", !(p->compat & ~SHARD_KNOWN_COMPAT),
		"feature bits 0x%" PRIx64 " are from a newer library; this one can read the shard, but not verify it",
		p->compat);
	return SHARD_OK;
}

/* ---- struct to pages: a byte without a meaning is zero, so the same struct gives the same page ---- */

void pages_encode_header(struct disk_header *out, const struct pages *p)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->magic, SHARD_HEADER_MAGIC, sizeof(out->magic));
	store64(out->endian_tag.b, SHARD_ENDIAN_TAG);
	store16(out->major.b, p->major);
	store16(out->minor.b, p->minor);
	store32(out->page_bytes.b, SHARD_PAGE_BYTES);
	store64(out->incompat.b, p->incompat);
	store64(out->compat.b, p->compat);
	store64(out->planned_records.b, p->planned_records);
	store64(out->plan_shard.b, p->plan_shard);
	store32(out->group_count.b, p->schema.group_count);
	store32(out->field_count.b, p->schema.field_count);
	store32(out->section_align_log2.b, p->section_align_log2);
	store16(out->leaf_hash.b, SHARD_HASH_XXH3);
	store16(out->table_hash.b, SHARD_HASH_XXH3);
	memcpy(out->plan_digest, p->plan_digest, sizeof(out->plan_digest));
	for (uint32_t i = 0; i < p->schema.group_count; i++) {
		const struct shard_group *g = &p->schema.group[i];
		struct disk_group *d = &out->group[i];

		store64(d->stride.b, g->stride);
		store64(d->record_bytes.b, g->record_bytes);
		store32(d->align_log2.b, g->align_log2);
		store32(d->codec.b, g->codec);
		store32(d->unit_records.b, g->unit_records);
		store32(d->chunk_records.b, g->chunk_records);
	}
	for (uint32_t i = 0; i < p->schema.field_count; i++) {
		const struct shard_field *f = &p->schema.field[i];
		struct disk_field *d = &out->field[i];

		memcpy(d->name, f->name, sizeof(d->name));
		store16(d->dtype.b, (uint16_t)f->dtype);
		d->ndim = (uint8_t)f->ndim;
		d->kind = (uint8_t)f->kind;
		store16(d->group.b, (uint16_t)f->group);
		store16(d->layout.b, (uint16_t)f->layout);
		for (uint32_t k = 0; k < SHARD_DIMS_MAX; k++)
			store32(d->shape[k].b, f->shape[k]);
		store64(d->offset.b, f->offset);
		store64(d->bytes.b, f->bytes);
		d->ragged_axes = (uint8_t)f->ragged_axes;
		d->length_field = (uint8_t)f->length_field;
		store16(d->semantic.b, (uint16_t)f->semantic);
	}
}

void pages_encode_footer(struct disk_footer *out, const struct pages *p)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->magic, SHARD_FOOTER_MAGIC, sizeof(out->magic));
	store16(out->major.b, p->major);
	store16(out->minor.b, p->minor);
	store32(out->page_bytes.b, SHARD_PAGE_BYTES);
	store64(out->file_bytes.b, p->file_bytes);
	store64(out->record_count.b, p->record_count);
	store32(out->section_count.b, p->section_count);
	memcpy(out->header_hash, p->header_hash, sizeof(out->header_hash));
	for (uint32_t i = 0; i < p->section_count; i++) {
		const struct section *s = &p->section[i];
		struct disk_section_entry *d = &out->section[i];

		store32(d->type.b, s->type);
		store32(d->flags.b, s->flags);
		store32(d->group.b, s->group);
		store64(d->offset.b, s->offset);
		store64(d->bytes.b, s->bytes);
		store64(d->items.b, s->items);
		memcpy(d->hash, s->hash, sizeof(d->hash));
	}
}
