/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.c - statistics of the records of a shard: sums over images, and values that are not finite
 *
 * What a tally has to look at in a record is found once, when it is opened.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "libshard/base/byte_sums.h"
#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/format/format.h"
#include "libshard/write/write.h"
#include "shard_pack.h"

struct tally_image {
	uint32_t field, group, channels;
	bool planes;	 /* the channels lie one behind the other, else interleaved */
	uint64_t offset; /* in the group's bytes of a record */
	uint64_t bytes;
	struct shard_moments channel[SHARD_TALLY_CHANNELS_MAX];
};

struct tally_float {
	uint32_t field, group, dtype;
	uint64_t offset, count;
	uint64_t nan, infinite;
};

struct shard_tally {
	struct tally_float real[SHARD_FIELDS_MAX];
	uint32_t real_count, image_count;
	struct tally_image image[];
};

int shard_tally_open(struct shard_tally **out, const struct shard_schema *schema, struct shard_error *err)
{
	uint32_t images = 0;
	struct shard_tally *t;

	for (uint32_t i = 0; i < schema->field_count; i++)
		images += shard_field_channels(&schema->field[i]) > 0;
	t = mem_zalloc(sizeof(*t) + images * sizeof(t->image[0]));
	if (!t)
		return error_set(err, SHARD_E_MEMORY, "no memory for statistics");
	for (uint32_t i = 0; i < schema->field_count; i++) {
		const struct shard_field *f = &schema->field[i];

		if (shard_field_channels(f))
			t->image[t->image_count++] = (struct tally_image){.field = i,
									  .group = f->group,
									  .channels = shard_field_channels(f),
									  .planes = f->layout == SHARD_CHW,
									  .offset = f->offset,
									  .bytes = f->bytes};
		if (f->dtype >= SHARD_F16 && f->dtype <= SHARD_F64)
			t->real[t->real_count++] =
				(struct tally_float){.field = i,
						     .group = f->group,
						     .dtype = f->dtype,
						     .offset = f->offset,
						     .count = f->bytes / shard_dtype_bytes(f->dtype)};
	}
	*out = t;
	return SHARD_OK;
}

void shard_tally_close(struct shard_tally *t)
{
	mem_free(t);
}

/* Without its sign, a number is infinite if its bits are infinity's, and NaN if they are more. */
static void count_not_finite(struct tally_float *f, const uint8_t *bytes)
{
	uint64_t nan = 0, infinite = 0, i;
	uint16_t half, limit = f->dtype == SHARD_F16 ? 0x7c00 : 0x7f80;

	switch (shard_dtype_bytes(f->dtype)) {
	case 2:
		for (i = 0; i < f->count; i++) {
			half = load16(bytes + 2 * i) & 0x7fff;
			nan += half > limit;
			infinite += half == limit;
		}
		break;
	case 4:
		for (i = 0; i < f->count; i++) {
			uint32_t word = load32(bytes + 4 * i) & 0x7fffffff;

			nan += word > 0x7f800000;
			infinite += word == 0x7f800000;
		}
		break;
	default:
		for (i = 0; i < f->count; i++) {
			uint64_t word = load64(bytes + 8 * i) & (UINT64_MAX >> 1);

			nan += word > UINT64_C(0x7ff0000000000000);
			infinite += word == UINT64_C(0x7ff0000000000000);
		}
	}
	f->nan += nan;
	f->infinite += infinite;
}

void shard_tally_add(struct shard_tally *t, const void *const *group)
{
	for (uint32_t i = 0; i < t->image_count; i++) {
		struct tally_image *m = &t->image[i];
		const uint8_t *bytes = (const uint8_t *)group[m->group] + m->offset;
		uint64_t plane_bytes = m->bytes / m->channels;

		if (!m->planes)
			byte_sums_add(bytes, m->bytes, m->channels, m->channel);
		for (uint32_t c = 0; m->planes && c < m->channels; c++)
			byte_sums_add(bytes + c * plane_bytes, plane_bytes, 1, &m->channel[c]);
	}
	for (uint32_t i = 0; i < t->real_count; i++)
		count_not_finite(&t->real[i], (const uint8_t *)group[t->real[i].group] + t->real[i].offset);
}

void shard_tally_move(struct shard_tally *t, struct shard_tally *from)
{
	assert(!t || t->image_count == from->image_count);
	for (uint32_t i = 0; i < from->image_count; i++) {
		struct tally_image *m = &from->image[i];

		for (uint32_t c = 0; t && c < m->channels; c++)
			byte_sums_merge(&t->image[i].channel[c], &m->channel[c]);
		memset(m->channel, 0, sizeof(m->channel));
	}
	for (uint32_t i = 0; i < from->real_count; i++) {
		if (t) {
			t->real[i].nan += from->real[i].nan;
			t->real[i].infinite += from->real[i].infinite;
		}
		from->real[i].nan = from->real[i].infinite = 0;
	}
}

void shard_tally_not_finite(const struct shard_tally *t, uint32_t field, uint64_t *nan, uint64_t *infinite)
{
	*nan = *infinite = 0;
	for (uint32_t i = 0; i < t->real_count; i++)
		if (t->real[i].field == field) {
			*nan = t->real[i].nan;
			*infinite = t->real[i].infinite;
		}
}

int shard_tally_write(const struct shard_tally *t, struct shard_writer *w, struct shard_error *err)
{
	int rc = w->failed || w->finished ? writer_refuse(w, err) : SHARD_OK;

	for (uint32_t i = 0; !rc && i < t->real_count; i++) {
		w->not_finite[t->real[i].field].nan += t->real[i].nan;
		w->not_finite[t->real[i].field].infinite += t->real[i].infinite;
	}
	for (uint32_t i = 0; i < t->image_count; i++)
		for (uint32_t c = 0; !rc && c < t->image[i].channels; c++)
			rc = writer_add_moments(w, t->image[i].field, c, &t->image[i].channel[c], err);
	return rc;
}
