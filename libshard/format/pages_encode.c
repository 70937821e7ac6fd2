/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages_encode.c - struct pages to header and footer page
 *
 * Pure.  The reverse of pages_decode.c.  Every byte that has no meaning is zero, so the same struct
 * gives the same page.
 */
#include "libshard/format/format.h"

#include "libshard/base/bytes.h"

static void encode_field(struct disk_field *d, const struct shard_field *f)
{
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
	for (uint32_t i = 0; i < p->schema.field_count; i++)
		encode_field(&out->field[i], &p->schema.field[i]);
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
