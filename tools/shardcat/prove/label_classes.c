/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label_classes.c - the class of each record, read from a field of integers
 */
#include "tools/shardcat/prove/prove.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/shardcat/dataset/number.h"

#define LABEL_BYTES (UINT64_C(4) << 20) /* read at a time */

int classes_no_memory(const struct target *t)
{
	return fail(EXIT_IO, "%s: out of memory for %" PRIu64 " records; each needs about 24 bytes", t->path,
		    t->record_count);
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int read_labels(struct target *t, const struct shard_field *label, int64_t *labels, struct progress *progress)
{
	uint64_t stride = label->stride, at_a_time = LABEL_BYTES / stride ? LABEL_BYTES / stride : 1;
	uint8_t *rows = malloc((size_t)(at_a_time * stride));
	int rc = rows ? EXIT_DONE : classes_no_memory(t);

	for (uint64_t first = 0; first < t->record_count && !rc; first += at_a_time) {
		uint64_t now = t->record_count - first < at_a_time ? t->record_count - first : at_a_time;

		rc = target_read(t, label->group, first, now, rows);
		for (uint64_t i = 0; i < now && !rc; i++)
			labels[first + i] = number_integer(label->dtype, rows + i * stride + label->offset);
		progress_add(progress, now, 0, 0);
		progress_tick(progress);
		if (!rc && interrupted())
			rc = EXIT_INTERRUPTED;
	}
	free(rows);
	return rc;
}

/* Labels may be any integers; classes are counted from 0. */
static int number_classes(struct classes *c, const struct target *t, const int64_t *labels, uint64_t n, int64_t *values)
{
	uint64_t count = 0;

	memcpy(values, labels, (size_t)n * sizeof(*values));
	qsort(values, (size_t)n, sizeof(*values), compare);
	for (uint64_t i = 0; i < n; i++)
		if (!count || values[i] != values[count - 1])
			values[count++] = values[i];
	c->class_of = calloc((size_t)n, sizeof(*c->class_of));
	c->class_records = calloc((size_t)count, sizeof(*c->class_records));
	if (!c->class_of || !c->class_records || count > UINT32_MAX)
		return classes_no_memory(t);
	for (uint64_t i = 0; i < n; i++) {
		const int64_t *found = bsearch(&labels[i], values, (size_t)count, sizeof(*values), compare);

		c->class_of[i] = (uint32_t)(found - values);
		c->class_records[c->class_of[i]]++;
	}
	c->class_count = (uint32_t)count;
	return EXIT_DONE;
}

int classes_take(struct classes *c, struct target *t, const struct shard_field *label, const uint64_t *record,
		 uint64_t count, struct progress *progress)
{
	int64_t *labels = calloc((size_t)t->record_count, sizeof(*labels));
	int64_t *values = calloc((size_t)t->record_count, sizeof(*values));
	int rc = labels && values ? EXIT_DONE : classes_no_memory(t);

	if (!rc)
		rc = read_labels(t, label, labels, progress);
	for (uint64_t i = 0; !rc && record && i < count; i++)
		labels[i] = labels[record[i]]; /* i is at most record[i] */
	if (!rc)
		rc = number_classes(c, t, labels, record ? count : t->record_count, values);
	free(labels);
	free(values);
	return rc;
}

void classes_free(struct classes *c)
{
	free(c->class_of);
	free(c->class_records);
}
