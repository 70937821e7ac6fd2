/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases.h - random shards: a schema, records and everything else that a shard can hold, from one
 * seed
 *
 * What is drawn stays in the model `m`, which says what a reader must give back.  The model knows
 * of the format only what a user knows: fields come back, bytes between them are zero.
 */
#ifndef TESTS_STORE_CASES_H
#define TESTS_STORE_CASES_H

#include "shard_pack.h"
#include "tests/store/fixture.h"

#define RECORDS_MAX  700u
#define CASE_CLASSES 6u

struct group_model {
	uint8_t *stride_bytes; /* all records as a reader must give them */
};

struct model {
	struct shard_schema s;
	uint64_t count, planned;
	struct group_model group[SHARD_GROUPS_MAX];
	bool keys, stats;
	char key[RECORDS_MAX][40];
	uint32_t key_bytes[RECORDS_MAX];
	struct shard_miss miss[50];
	uint32_t miss_count;
	const char *provenance;
	struct shard_writer_options o;
	uint8_t plan[32];
};

static struct model m; /* of the running case */

/* ---- drawing a case ---- */

static inline uint32_t add_field(struct shard_schema *s, const char *prefix, uint32_t dtype, uint32_t group)
{
	struct shard_field *f = &s->field[s->field_count];

	*f = (struct shard_field){.dtype = dtype, .group = group};
	snprintf(f->name, sizeof(f->name), "%s%u", prefix, s->field_count);
	return s->field_count++;
}

static inline void draw_fields(struct prng *p, struct shard_schema *s, uint32_t group)
{
	uint32_t fields = 1 + (uint32_t)prng_below(p, 3);

	for (uint32_t i = 0; i < fields; i++) {
		uint32_t kind = (uint32_t)prng_below(p, 5), idx, length;
		struct shard_field *f;

		idx = add_field(s, "f.", kind == 4 ? SHARD_U8 : 1 + (uint32_t)prng_below(p, 13), group);
		f = &s->field[idx];
		f->ndim = kind == 4 ? 1 : (uint32_t)prng_below(p, 4) + (kind == 3);
		for (uint32_t d = 0; d < f->ndim; d++)
			f->shape[d] = 1 + (uint32_t)prng_below(p, 5);
		if (kind < 3) {
			f->layout = (uint32_t)prng_below(p, 5);
			continue;
		}
		f->kind = kind == 4 ? SHARD_STRING : SHARD_RAGGED;
		f->ragged_axes = kind == 4 ? 1 : 1 + (uint32_t)prng_below(p, (1u << f->ndim) - 1);
		length = add_field(s, "len-", SHARD_U32, (uint32_t)prng_below(p, s->group_count)); /* anywhere */
		f->length_field = length;
		s->field[length].semantic = SHARD_LENGTH;
		s->field[length].shape[0] = (uint32_t)__builtin_popcount(f->ragged_axes);
		s->field[length].ndim = s->field[length].shape[0] > 1 || prng_below(p, 2);
		if (!s->field[length].ndim)
			s->field[length].shape[0] = 0;
	}
}

static inline void draw_schema(struct prng *p, struct shard_schema *s)
{
	memset(s, 0, sizeof(*s));
	s->group_count = 1 + (uint32_t)prng_below(p, prng_below(p, 4) ? 3 : 4);
	for (uint32_t g = 0; g < s->group_count; g++) {
		s->group[g].codec = (uint32_t)prng_below(p, 2);
		draw_fields(p, s, g);
	}
	if (s->field_count < SHARD_FIELDS_MAX && prng_below(p, 3))
		s->field[add_field(s, "label", SHARD_I64, (uint32_t)prng_below(p, s->group_count))].semantic =
			SHARD_LABEL;
	CHECK_OK(shard_schema_lay_out(s, prng_below(p, 8) ? 0 : 4096, &fixture_err));
	for (uint32_t g = 0; g < s->group_count; g++) { /* other choices than the advised ones are as good */
		static const uint32_t units[] = {1, 2, 7, 64, 256};
		struct shard_group *group = &s->group[g];

		if (prng_below(p, 4)) {
			group->unit_records = units[prng_below(p, 5)];
			group->chunk_records = group->codec == SHARD_RAW ? 0 : group->unit_records;
		}
		if (prng_below(p, 4) == 0) {
			/* a hole at the end, and one within record_bytes */
			group->stride += (uint64_t)3 << group->align_log2;
			group->record_bytes += prng_below(p, group->stride - group->record_bytes + 1);
		}
	}
	for (uint32_t f = 0; f < s->field_count; f++)
		s->field[f].stride = s->group[s->field[f].group].stride;
}

static inline uint64_t product(const uint32_t *shape, uint32_t from, uint32_t to)
{
	uint64_t n = 1;

	for (uint32_t d = from; d < to; d++)
		n *= shape[d];
	return n;
}

/* Zero those elements of a ragged field that lie past its lengths. */
static inline void cut_field(const struct shard_field *f, const uint32_t *lengths, uint8_t *data)
{
	size_t item = shard_dtype_bytes(f->dtype);
	uint32_t k = 0;

	for (uint32_t d = 0; d < f->ndim; d++) {
		uint64_t inner = product(f->shape, d + 1, f->ndim), outer = product(f->shape, 0, d);

		if (!(f->ragged_axes >> d & 1))
			continue;
		for (uint64_t o = 0; o < outer; o++)
			memset(data + (o * f->shape[d] + lengths[k]) * inner * item, 0,
			       (f->shape[d] - lengths[k]) * inner * item);
		k++;
	}
}

/*
 * Fill one record: `record` is what the writer is given, with rubbish between the fields; the model
 * has zeros there.
 */
static inline void draw_record(struct prng *p, uint64_t idx, uint8_t *record[])
{
	const struct shard_schema *s = &m.s;
	const struct shard_field *label = shard_schema_label(s);
	int64_t class_idx = (int64_t)(idx * idx % 5); /* one class has none */
	bool noise = prng_below(p, 3) == 0;

	for (uint32_t g = 0; g < s->group_count; g++)
		prng_fill(p, record[g], (size_t)s->group[g].record_bytes);
	for (uint32_t i = 0; !noise && i < s->field_count; i++) /* something to compress */
		memset(record[s->field[i].group] + s->field[i].offset, (int)prng_below(p, 3),
		       (size_t)s->field[i].bytes);
	for (uint32_t i = 0; i < s->field_count; i++) {
		const struct shard_field *f = &s->field[i], *l = &s->field[f->length_field];
		uint32_t lengths[SHARD_DIMS_MAX] = {0}, k = 0;

		if (f->kind == SHARD_TENSOR)
			continue;
		for (uint32_t d = 0; d < f->ndim; d++)
			if (f->ragged_axes >> d & 1)
				lengths[k++] = (uint32_t)prng_below(p, f->shape[d] + 1);
		memcpy(record[l->group] + l->offset, lengths, 4 * k);
		cut_field(f, lengths, record[f->group] + f->offset);
	}
	if (label && m.o.class_count)
		memcpy(record[label->group] + label->offset, &class_idx, sizeof(class_idx));
	for (uint32_t i = 0; i < s->field_count; i++) {
		const struct shard_field *f = &s->field[i];

		memcpy(m.group[f->group].stride_bytes + idx * s->group[f->group].stride + f->offset,
		       record[f->group] + f->offset, (size_t)f->bytes);
	}
}

static inline void draw_key(struct prng *p, uint64_t idx)
{
	static const char *const pieces[] = {"", "a/", "\xc3\xa9", "\xf0\x9f\x90\x8d", "photo.jpg"};
	uint32_t used = 0;

	for (uint64_t n = prng_below(p, 4); n; n--)
		used += (uint32_t)snprintf(m.key[idx] + used, sizeof(m.key[0]) - used, "%s", pieces[prng_below(p, 5)]);
	m.key_bytes[idx] = used;
}

static inline void draw(uint64_t seed)
{
	struct prng p = {seed * 1000003};
	static const uint64_t counts[] = {0, 1, 2, 7, 64, 255, 256, 257};

	memset(&m, 0, sizeof(m));
	draw_schema(&p, &m.s);
	m.count = prng_below(&p, 3) ? prng_below(&p, 40) : counts[prng_below(&p, 8)];
	m.keys = prng_below(&p, 2);
	m.stats = prng_below(&p, 2);
	m.miss_count = prng_below(&p, 3) ? 0 : (uint32_t)prng_below(&p, 50);
	for (uint32_t i = 0; i < m.miss_count; i++)
		m.miss[i] = (struct shard_miss){(i ? m.miss[i - 1].ordinal + 1 : 0) + prng_below(&p, 9),
						1 + (uint32_t)prng_below(&p, 65535), 1 + (uint32_t)prng_below(&p, 2)};
	m.provenance = prng_below(&p, 3)   ? NULL
		       : prng_below(&p, 2) ? ""
					   : "made by t_writer \xe2\x86\x92 for t_writer\n";
	m.planned = m.count + m.miss_count + prng_below(&p, 3);
	m.planned += !m.planned;
	prng_fill(&p, m.plan, 32);
	m.o = (struct shard_writer_options){
		.size = sizeof(m.o),
		.planned_records = m.planned,
		.plan_shard = prng_next(&p),
		.plan_digest = prng_below(&p, 2) ? m.plan : NULL,
		.provenance = m.provenance,
		.keys = m.keys,
		.skip_read_back = prng_below(&p, 8) != 0,
		.class_count = m.stats ? CASE_CLASSES : 0,
	};
	for (uint32_t g = 0; g < m.s.group_count; g++)
		m.group[g].stride_bytes = calloc((size_t)m.count + 1, (size_t)m.s.group[g].stride);
}

static inline void undraw(void)
{
	for (uint32_t g = 0; g < m.s.group_count; g++)
		free(m.group[g].stride_bytes);
}

/* ---- writing it ---- */

static inline bool takes_moments(const struct shard_field *f)
{
	return f->kind == SHARD_TENSOR && f->dtype == SHARD_U8;
}

static inline bool takes_classes(const struct shard_field *f)
{
	return m.o.class_count && f == shard_schema_label(&m.s);
}

/* Channels as SHARD.md 2.6 counts them, and of the element with that number. */
static inline uint64_t channels(const struct shard_field *f)
{
	return f->ndim && f->layout == SHARD_HWC   ? f->shape[f->ndim - 1]
	       : f->ndim && f->layout == SHARD_CHW ? f->shape[0]
						   : 1;
}

static inline uint64_t channel_of(const struct shard_field *f, uint64_t element)
{
	if (f->ndim && f->layout == SHARD_HWC)
		return element % f->shape[f->ndim - 1];
	return f->ndim && f->layout == SHARD_CHW ? element / product(f->shape, 1, f->ndim) : 0;
}

static inline struct shard_moments moments_of(const struct shard_field *f, uint64_t channel)
{
	struct shard_moments sums = {0, 0, 0, 0};

	for (uint64_t r = 0; r < m.count; r++)
		for (uint64_t e = 0; e < f->bytes; e++) {
			uint64_t v = m.group[f->group].stride_bytes[r * f->stride + f->offset + e];

			if (channel_of(f, e) != channel)
				continue;
			sums.count++;
			sums.sum += v;
			sums.sum_squares_low += v * v;
		}
	return sums;
}

static inline void write_stats(struct shard_writer *w)
{
	for (uint32_t i = 0; i < m.s.field_count; i++) {
		const struct shard_field *f = &m.s.field[i];

		for (uint64_t c = 0; takes_moments(f) && c < channels(f); c++) {
			struct shard_moments sums = moments_of(f, c),
					     half = {sums.count / 2, sums.sum / 2, sums.sum_squares_low / 2, 0};
			struct shard_moments rest = {sums.count - half.count, sums.sum - half.sum,
						     sums.sum_squares_low - half.sum_squares_low, 0};

			CHECK_OK(writer_add_moments(w, i, (uint32_t)c, &half, &fixture_err));
			CHECK_OK(writer_add_moments(w, i, (uint32_t)c, &rest, &fixture_err));
		}
	}
}

/* Write the case of `seed` to `path`; the model is filled on the way. */
static inline int write_case(uint64_t seed, const char *path, struct shard_written *out)
{
	struct prng p = {seed * 7919 + 1};
	uint8_t *record[SHARD_GROUPS_MAX];
	struct shard_writer *w = NULL;
	int rc;

	CHECK_OK(shard_writer_open(&w, path, &m.s, &m.o, &fixture_err));
	for (uint32_t g = 0; g < m.s.group_count; g++)
		record[g] = malloc((size_t)m.s.group[g].record_bytes); /* not one byte more, for the sanitizer */
	for (uint64_t i = 0; i < m.count; i++) {
		draw_record(&p, i, record);
		draw_key(&p, i);
		CHECK_OK(shard_writer_append(w, (const void *const *)record, m.keys ? m.key[i] : NULL,
					     m.keys ? m.key_bytes[i] : 0, &fixture_err));
	}
	for (uint32_t i = 0; i < m.miss_count; i++)
		CHECK_OK(shard_writer_miss(w, &m.miss[i], &fixture_err));
	if (m.stats)
		write_stats(w);
	rc = shard_writer_finish(w, out, &fixture_err);
	shard_writer_close(w);
	for (uint32_t g = 0; g < m.s.group_count; g++)
		free(record[g]);
	return rc;
}

#endif
