/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeats.c - which records have the same content?
 *
 * Entries are sorted by content, and equal ones become one.  If there are too many for the memory
 * they are written to an unnamed file as they come, and it is read once for each part of the range
 * of hashes.  Parts are made small enough that chance does not overfill one; if one is overfull all
 * the same, its copies are merged first.
 */
#include "tools/shardcat/dataset/cat_dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"

struct entry {
	struct content_hash content;
	uint64_t first, count;
	int64_t label;
	bool labels_differ;
};

struct written {
	struct content_hash content;
	uint64_t record;
	int64_t label;
};

struct repeats_store {
	struct entry *entries;
	uint64_t capacity, used;
	uint64_t parts; /* 1: all entries are in memory */
	FILE *spool;
};

/* The hash of the fields' hashes, so that nothing needs to be copied together. */
struct content_hash content_hash(const struct shard_schema *schema, const void *const rows[SHARD_FIELDS_MAX],
				 const struct shard_field *left_out)
{
	struct content_hash field[SHARD_FIELDS_MAX], record;
	uint32_t count = 0;

	for (uint32_t f = 0; f < schema->field_count; f++)
		if (&schema->field[f] != left_out)
			shard_xxh128(rows[f], (size_t)schema->field[f].bytes, field[count++].bytes);
	shard_xxh128(field, count * sizeof(field[0]), record.bytes);
	return record;
}

int repeats_open(struct repeats *r, uint64_t record_count, uint64_t memory_bytes)
{
	struct repeats_store *s = xcalloc(1, sizeof(*s));

	r->store = s;
	s->capacity = memory_bytes / sizeof(struct entry);
	if (s->capacity >= record_count)
		s->capacity = record_count + 1;
	s->parts = record_count < s->capacity ? 1 : record_count / (s->capacity / 2 + 1) + 1;
	s->entries = malloc((size_t)(s->capacity + 1) * sizeof(*s->entries));
	if (!s->entries)
		return fail(EXIT_IO, "out of memory for %" PRIu64 " records, %zu bytes each; use a smaller --memory",
			    s->capacity, sizeof(*s->entries));
	if (s->parts > 1)
		s->spool = tmpfile();
	if (s->parts > 1 && !s->spool)
		return fail(EXIT_IO, "cannot create a temporary file: %s", strerror(errno));
	return EXIT_DONE;
}

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = memcmp(x->content.bytes, y->content.bytes, sizeof(x->content.bytes));

	return order ? order : (x->first > y->first) - (x->first < y->first);
}

/* Sort, and make equal ones one. */
static void merge(struct repeats_store *s)
{
	uint64_t kept = 0;

	qsort(s->entries, (size_t)s->used, sizeof(*s->entries), compare);
	for (uint64_t i = 0; i < s->used; i++) {
		struct entry *e = &s->entries[i], *last = kept ? &s->entries[kept - 1] : NULL;

		if (last && !memcmp(&last->content, &e->content, sizeof(e->content))) {
			last->count += e->count;
			last->labels_differ = last->labels_differ || e->labels_differ || e->label != last->label;
		} else {
			s->entries[kept++] = *e;
		}
	}
	s->used = kept;
}

static int add_entry(struct repeats_store *s, const struct written *w)
{
	if (s->used == s->capacity)
		merge(s);
	if (s->used == s->capacity)
		return fail(EXIT_IO, "more than %" PRIu64 " different records in one part; use a larger --memory",
			    s->capacity);
	s->entries[s->used++] =
		(struct entry){.content = w->content, .first = w->record, .count = 1, .label = w->label};
	return EXIT_DONE;
}

int repeats_add(struct repeats *r, const struct content_hash *content, uint64_t record, int64_t label)
{
	const struct written w = {.content = *content, .record = record, .label = label};

	if (r->store->parts == 1)
		return add_entry(r->store, &w);
	if (fwrite(&w, sizeof(w), 1, r->store->spool) != 1)
		return fail(EXIT_IO, "cannot write the temporary file: %s", strerror(errno));
	return EXIT_DONE;
}

/* Into the list, which is sorted by `first`, if there is room or a later one to push out. */
static void add_to_list(struct repeats *r, const struct entry *e)
{
	uint64_t at = r->listed_count;

	if (at == REPEATS_LISTED && r->listed[at - 1].first < e->first)
		return;
	at -= at == REPEATS_LISTED;
	for (; at && r->listed[at - 1].first > e->first; at--)
		r->listed[at] = r->listed[at - 1];
	r->listed[at] = (struct repeat){.first = e->first, .count = e->count, .labels_differ = e->labels_differ};
	r->listed_count += r->listed_count < REPEATS_LISTED;
}

static void count_part(struct repeats *r)
{
	merge(r->store);
	for (uint64_t i = 0; i < r->store->used; i++) {
		const struct entry *e = &r->store->entries[i];

		if (e->count == 1)
			continue;
		r->groups++;
		r->extra += e->count - 1;
		r->label_conflicts += e->labels_differ;
		add_to_list(r, e);
	}
}

static int read_part(struct repeats_store *s, uint64_t part)
{
	struct written w;
	uint64_t head;
	int rc = EXIT_DONE;

	s->used = 0;
	if (fseek(s->spool, 0, SEEK_SET))
		return fail(EXIT_IO, "cannot read the temporary file: %s", strerror(errno));
	while (!rc && fread(&w, sizeof(w), 1, s->spool) == 1) {
		memcpy(&head, w.content.bytes, sizeof(head));
		if (head % s->parts == part)
			rc = add_entry(s, &w);
	}
	if (!rc && ferror(s->spool))
		rc = fail(EXIT_IO, "cannot read the temporary file: %s", strerror(errno));
	return rc;
}

int repeats_count(struct repeats *r)
{
	struct repeats_store *s = r->store;
	int rc = EXIT_DONE;

	if (s->parts == 1) {
		count_part(r);
		return EXIT_DONE;
	}
	if (fflush(s->spool))
		return fail(EXIT_IO, "cannot write the temporary file: %s", strerror(errno));
	for (uint64_t part = 0; part < s->parts && !rc; part++) {
		rc = read_part(s, part);
		if (!rc)
			count_part(r);
		if (!rc && interrupted())
			rc = EXIT_INTERRUPTED;
	}
	return rc;
}

void repeats_close(struct repeats *r)
{
	if (!r->store)
		return;
	if (r->store->spool)
		fclose(r->store->spool);
	free(r->store->entries);
	free(r->store);
	r->store = NULL;
}
