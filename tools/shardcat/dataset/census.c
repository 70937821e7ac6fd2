/* SPDX-License-Identifier: Apache-2.0 */
/*
 * census.c - sums of every field, records of every class, and copies, of a whole dataset or shard
 *
 * Records are read in their order, some MiB at a time; what is kept does not grow with them, see
 * repeats.c.
 */
#include "tools/shardcat/dataset/cat_dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/byte_sums.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/shelf.h"
#include "tools/common/signals.h"

#define READ_BYTES	 (UINT64_C(4) << 20) /* about this much is asked for at a time */
#define READ_RECORDS_MAX 4096
#define CLASSES_MAX	 (UINT64_C(1) << 20) /* labels counted one by one where no classes are recorded */

/* ---- sums over the values of one channel, exact for integers ---- */

/* Add what was counted apart, of values from `min` to `max`. */
static void merge_integers(struct sums *s, const struct sums *part)
{
	if (!part->count)
		return;
	if (!s->count || part->min < s->min)
		s->min = part->min;
	if (!s->count || part->max > s->max)
		s->max = part->max;
	s->count += part->count;
	s->sum += part->sum; /* 2^64 values below 2^64 do not overflow it */
	s->overflowed =
		s->overflowed || part->overflowed || __builtin_add_overflow(s->squares, part->squares, &s->squares);
}

/* From recorded moments. */
static void sums_of_moments(struct sums *s, const struct shard_moments *m)
{
	*s = (struct sums){.count = m->count,
			   .sum = m->sum,
			   .squares = (wide_unsigned)m->sum_squares_high << 64 | m->sum_squares_low};
}

/* The sums are there; the limits are not. */
static void add_bytes(struct sums *part, const struct shard_moments *m, const uint8_t *data, uint64_t count,
		      uint64_t step)
{
	uint8_t min = 255, max = 0;

	for (uint64_t i = 0; i < count; i++) {
		uint8_t value = data[i * step];

		min = value < min ? value : min;
		max = value > max ? value : max;
	}
	sums_of_moments(part, m);
	part->min = min;
	part->max = max;
}

static void add_integers(struct sums *part, uint32_t dtype, const uint8_t *data, uint64_t count, uint64_t step)
{
	uint64_t step_bytes = step * shard_dtype_bytes(dtype);

	for (uint64_t i = 0; i < count; i++, data += step_bytes) {
		int64_t bits = number_integer(dtype, data);
		int128 value = dtype == SHARD_U64 ? (int128)(uint64_t)bits : dtype == SHARD_BOOL ? bits != 0 : bits;
		wide_unsigned size = (wide_unsigned)(value < 0 ? -value : value);

		part->sum += value;
		part->min = !i || value < part->min ? value : part->min;
		part->max = !i || value > part->max ? value : part->max;
		part->overflowed =
			part->overflowed || __builtin_add_overflow(part->squares, size * size, &part->squares);
	}
	part->count = count;
}

static void add_floats(struct sums *part, uint32_t dtype, const uint8_t *data, uint64_t count, uint64_t step)
{
	uint64_t step_bytes = step * shard_dtype_bytes(dtype);
	long double sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		double value = number_double(dtype, data + i * step_bytes);

		if (!isfinite(value)) {
			part->nan += isnan(value) != 0;
			part->infinite += isinf(value) != 0;
			continue;
		}
		part->float_min = !part->count || value < part->float_min ? value : part->float_min;
		part->float_max = !part->count || value > part->float_max ? value : part->float_max;
		part->count++;
		sum += value;
	}
	if (!part->count)
		return;
	part->mean = sum / part->count;
	for (uint64_t i = 0; i < count; i++) {
		double value = number_double(dtype, data + i * step_bytes);

		if (isfinite(value))
			part->deviations += (value - part->mean) * (value - part->mean);
	}
}

/* Chan's rule for the mean and the squared deviations of two parts together. */
static void merge_floats(struct sums *s, const struct sums *part)
{
	uint64_t both = s->count + part->count;
	long double apart = part->mean - s->mean;

	s->nan += part->nan;
	s->infinite += part->infinite;
	if (!part->count)
		return;
	s->float_min = !s->count || part->float_min < s->float_min ? part->float_min : s->float_min;
	s->float_max = !s->count || part->float_max > s->float_max ? part->float_max : s->float_max;
	s->deviations += part->deviations + apart * apart * ((long double)s->count / both) * part->count;
	s->mean += apart * ((long double)part->count / both);
	s->count = both;
}

/* One channel of one record. */
static void add_part(struct sums *s, const struct sums *part)
{
	double std = sums_std(part);

	if (part->is_float)
		merge_floats(s, part);
	else
		merge_integers(s, part);
	if (!isfinite(std))
		return;
	s->record_count++;
	s->record_means += (long double)sums_mean(part);
	s->record_stds += (long double)std;
}

/*
 * Add one record: `count` values, at least one, of each channel.  They are interleaved, or a
 * channel lies behind the other.
 */
static void sums_add(struct sums *s, uint32_t channels, uint32_t dtype, const uint8_t *data, uint64_t count,
		     bool interleaved)
{
	uint64_t step = interleaved ? channels : 1, apart = interleaved ? 1 : count;
	struct shard_moments m[SUMS_CHANNELS_MAX] = {{0}};

	if (dtype == SHARD_U8 && interleaved)
		byte_sums_add(data, count * channels, channels, m);
	for (uint32_t c = 0; c < channels; c++) {
		const uint8_t *first = data + c * apart * shard_dtype_bytes(dtype);
		struct sums part = {.is_float = dtype_is_float(dtype)};

		s[c].is_float = part.is_float;
		if (dtype == SHARD_U8 && !interleaved)
			byte_sums_add(first, count, 1, &m[c]);
		if (part.is_float)
			add_floats(&part, dtype, first, count, step);
		else if (dtype == SHARD_U8)
			add_bytes(&part, &m[c], first, count, step);
		else
			add_integers(&part, dtype, first, count, step);
		add_part(&s[c], &part);
	}
}

double sums_mean(const struct sums *s)
{
	if (!s->count)
		return (double)NAN;
	return (double)(s->is_float ? s->mean : (long double)s->sum / s->count);
}

double sums_std(const struct sums *s)
{
	wide_unsigned size = (wide_unsigned)(s->sum < 0 ? -s->sum : s->sum), squares, square;
	long double mean, variance;

	if (!s->count || s->overflowed)
		return (double)NAN;
	if (s->is_float)
		return (double)sqrtl(s->deviations / s->count);
	/* Without rounding before the division, if the numbers are not too large for that. */
	if (!__builtin_mul_overflow(s->squares, (wide_unsigned)s->count, &squares) &&
	    !__builtin_mul_overflow(size, size, &square))
		return (double)(sqrtl((long double)(squares - square)) / s->count);
	mean = (long double)s->sum / s->count;
	variance = (long double)s->squares / s->count - mean * mean;
	return variance > 0 ? (double)sqrtl(variance) : 0;
}

static void put_digits(char *out, wide_unsigned value)
{
	char digits[INT128_CHARS];
	int count = 0;

	do {
		digits[count++] = (char)('0' + (int)(value % 10));
		value /= 10;
	} while (value);
	while (count)
		*out++ = digits[--count];
	*out = 0;
}

const char *wide_unsigned_text(char out[INT128_CHARS], wide_unsigned value)
{
	put_digits(out, value);
	return out;
}

const char *int128_text(char out[INT128_CHARS], int128 value)
{
	out[0] = '-';
	put_digits(out + (value < 0), (wide_unsigned)(value < 0 ? -value : value));
	return out;
}

/* ---- the census ---- */

/* The axis of its channels, or ndim if the field is one channel. */
static uint32_t channel_axis(const struct shard_field *f)
{
	uint32_t axis = f->layout == SHARD_HWC ? 2 : 0;

	if (f->ndim == 2 && f->layout == SHARD_HWC && f->ragged_axes == 1 && f->shape[1] <= SUMS_CHANNELS_MAX)
		return 1; /* a whole image: pixels, one behind the other */
	if (f->ndim != 3 || (f->layout != SHARD_HWC && f->layout != SHARD_CHW) || (f->ragged_axes >> axis & 1) ||
	    f->shape[axis] > SUMS_CHANNELS_MAX)
		return f->ndim;
	return axis;
}

static int read_recorded_field(struct census *c, uint32_t field)
{
	const struct shard_field *f = &c->input->schema->field[field];
	struct census_field *out = &c->field[field];
	uint32_t axis = channel_axis(f);
	struct shard_moments m;
	struct shard_error err;
	int rc = SHARD_OK;

	if (f == c->label || f->semantic == SHARD_TEXT)
		return EXIT_DONE;
	out->channels = axis < f->ndim ? f->shape[axis] : 1;
	for (uint32_t i = 0; i < out->channels && rc == SHARD_OK; i++) {
		rc = input_moments(c->input, field, i, &m, &err);
		if (rc == SHARD_OK)
			sums_of_moments(&out->sums[i], &m);
	}
	out->recorded = out->channels && rc == SHARD_OK;
	return rc < 0 ? fail_of_library(&err) : EXIT_DONE;
}

static int read_recorded_classes(struct census *c)
{
	uint32_t label = (uint32_t)(c->label - c->input->schema->field);
	uint64_t count = 0, records;
	struct shard_error err;
	int rc;

	while ((rc = input_class_records(c->input, label, count, &records, &err)) == SHARD_OK)
		count++;
	c->classes_recorded = count > 0;
	while (!count && input_class_name(c->input, c->class_count))
		c->class_count++;
	c->class_count += count;
	c->class_records = xcalloc((size_t)c->class_count + 1, sizeof(*c->class_records));
	for (uint64_t i = 0; i < count && rc >= 0; i++)
		rc = input_class_records(c->input, label, i, &c->class_records[i], &err);
	return rc < 0 ? fail_of_library(&err) : EXIT_DONE;
}

int census_open(struct census *c, struct input *in)
{
	int rc = EXIT_DONE;

	c->input = in;
	c->label = input_label_field(in);
	for (uint32_t i = 0; i < in->schema->field_count && !rc; i++) {
		c->has_content = c->has_content || &in->schema->field[i] != c->label;
		rc = read_recorded_field(c, i);
	}
	if (!rc && c->label)
		rc = read_recorded_classes(c);
	return rc;
}

void census_close(struct census *c)
{
	repeats_close(&c->repeats);
	free(c->class_records);
	c->class_records = NULL;
}

/* ---- reading ---- */

struct reading {
	struct census_field *field; /* [SHARD_FIELDS_MAX] what the records say */
	uint64_t *class_records, class_capacity, class_count, other_labels;
	void *group[SHARD_GROUPS_MAX]; /* records that were read together */
};

static int add_field(struct census *c, struct reading *r, uint32_t field, const struct record *record)
{
	const struct shard_field *f = &c->input->schema->field[field];
	struct census_field *to = &r->field[field];
	struct tensor tensor = {.element_count = 1};
	const uint8_t *data = (const uint8_t *)record->group[f->group] + f->offset;
	uint64_t count;
	int rc = EXIT_DONE;

	if (f->kind == SHARD_TENSOR) {
		for (uint32_t i = 0; i < f->ndim; i++)
			tensor.element_count *= f->shape[i];
	} else {
		rc = tensor_take(c->input, record, f, &tensor);
		data = tensor.data;
	}
	count = tensor.element_count / to->channels;
	if (!rc && count)
		sums_add(to->sums, to->channels, f->dtype, data, count, f->layout == SHARD_HWC);
	tensor_free(&tensor);
	return rc;
}

/* Labels of a dataset without recorded classes make the table grow. */
static void add_label(struct census *c, struct reading *r, int64_t label)
{
	uint64_t old = r->class_count;

	if (!c->class_count && label >= 0 && (uint64_t)label >= old && (uint64_t)label < CLASSES_MAX) {
		r->class_count = (uint64_t)label + 1;
		grow(&r->class_records, &r->class_capacity, r->class_count, sizeof(*r->class_records));
		memset(r->class_records + old, 0, (size_t)(r->class_count - old) * sizeof(*r->class_records));
	}
	if (label >= 0 && (uint64_t)label < r->class_count)
		r->class_records[label]++;
	else
		r->other_labels++;
}

static int add_record(struct census *c, struct reading *r, const struct record *record)
{
	const struct shard_schema *schema = c->input->schema;
	const void *rows[SHARD_FIELDS_MAX];
	struct content_hash content;
	int64_t label = 0;
	int rc = EXIT_DONE;

	for (uint32_t i = 0; i < schema->field_count && !rc; i++) {
		const struct shard_field *f = &schema->field[i];

		rows[i] = (const uint8_t *)record->group[f->group] + f->offset;
		if (f == c->label) {
			label = number_integer(f->dtype, rows[i]);
			add_label(c, r, label);
		} else if (r->field[i].channels) {
			rc = add_field(c, r, i, record);
		}
	}
	if (rc || !c->has_content)
		return rc;
	content = content_hash(schema, rows, c->label);
	return repeats_add(&c->repeats, &content, record->idx, label);
}

static int add_block(struct census *c, struct reading *r, uint64_t first, uint64_t count)
{
	const struct shard_schema *schema = c->input->schema;
	struct record record = {.idx = 0};
	int rc = EXIT_DONE;

	for (uint32_t g = 0; g < schema->group_count && !rc; g++)
		rc = input_read(c->input, g, first, count, r->group[g]);
	for (uint64_t i = 0; i < count && !rc; i++) {
		for (uint32_t g = 0; g < schema->group_count; g++)
			record.group[g] = (uint8_t *)r->group[g] + i * schema->group[g].stride;
		record.idx = first + i;
		rc = add_record(c, r, &record);
	}
	return rc;
}

/* What was recorded must be what was read; then what was read says more. */
static int compare_and_replace(struct census *c, struct reading *r)
{
	for (uint32_t i = 0; i < c->input->schema->field_count; i++) {
		for (uint32_t k = 0; k < c->field[i].channels && c->field[i].recorded; k++) {
			const struct sums *was = &c->field[i].sums[k], *is = &r->field[i].sums[k];

			if (was->count != is->count || was->sum != is->sum || was->squares != is->squares)
				return fail(EXIT_BAD,
					    "%s: field %s, channel %" PRIu32 ": the recorded sums differ "
					    "from the sums of the records",
					    c->input->path, c->input->schema->field[i].name, k);
		}
		r->field[i].recorded = c->field[i].recorded;
		c->field[i] = r->field[i];
	}
	for (uint64_t i = 0; c->classes_recorded && i < c->class_count; i++)
		if (c->class_records[i] != r->class_records[i])
			return fail(EXIT_BAD,
				    "%s: class %" PRIu64 " has %" PRIu64 " records; the recorded number is "
				    "%" PRIu64,
				    c->input->path, i, r->class_records[i], c->class_records[i]);
	if (c->label) {
		free(c->class_records);
		c->class_records = r->class_records;
		r->class_records = NULL;
	}
	c->class_count = r->class_count;
	c->other_labels = r->other_labels;
	c->has_read = true;
	return EXIT_DONE;
}

int census_read(struct census *c, uint64_t memory_bytes)
{
	const struct shard_schema *schema = c->input->schema;
	struct reading r = {.class_count = c->class_count, .class_capacity = c->class_count + 1};
	struct progress progress;
	uint64_t total = c->input->record_count, record_bytes = 1, block_records;
	int rc = EXIT_DONE;

	for (uint32_t g = 0; g < schema->group_count; g++)
		record_bytes += schema->group[g].stride;
	block_records = READ_BYTES / record_bytes + 1;
	if (block_records > READ_RECORDS_MAX)
		block_records = READ_RECORDS_MAX;
	r.class_records = xcalloc(r.class_capacity, sizeof(*r.class_records));
	r.field = xcalloc(SHARD_FIELDS_MAX, sizeof(*r.field));
	for (uint32_t g = 0; g < schema->group_count; g++)
		r.group[g] = xmalloc(block_records, schema->group[g].stride);
	for (uint32_t i = 0; i < schema->field_count; i++)
		r.field[i].channels = c->field[i].channels;
	if (c->has_content)
		rc = repeats_open(&c->repeats, total, memory_bytes);
	progress_start(&progress, "reading", "records", total);
	for (uint64_t first = 0, now; first < total && !rc; first += now) {
		now = total - first < block_records ? total - first : block_records;
		rc = add_block(c, &r, first, now);
		progress_add(&progress, now, 0, 0);
		progress_tick(&progress);
		if (!rc && interrupted())
			rc = EXIT_INTERRUPTED;
	}
	progress_abandon(&progress);
	if (!rc && c->has_content)
		rc = repeats_count(&c->repeats);
	if (!rc)
		rc = compare_and_replace(c, &r);
	for (uint32_t g = 0; g < schema->group_count; g++)
		free(r.group[g]);
	free(r.class_records);
	free(r.field);
	return rc;
}
