/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verifying.h - a dataset to verify, the problems that are told of it, and how often each unit was
 * checked
 *
 * A program that includes this links with -Wl,--wrap=verify_units.
 */
#ifndef TESTS_STORE_VERIFYING_H
#define TESTS_STORE_VERIFYING_H

#include <pthread.h>

#include "libshard/verify/verify.h"
#include "shard_inspect.h"
#include "tests/store/fixture.h"

/* ---- what the verifier asks of others ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* how often a unit was checked: of groups 0 and 1, in the order of shards in a file or not */
static unsigned seen[2][10000];
static bool counting;

/* Not 0: the shard is cut here after its tables were checked, before its first units are. */
static uint64_t cut_at;

/* The most maps of shards that there were at a time. */
static bool counting_maps;
static unsigned maps_most; /* of one thread */

/* Maps of files in the folder of this one. */
static inline unsigned maps_of(const char *path)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int folder_bytes = (int)(strrchr(path, '/') - path);
	char line[8192];
	unsigned count = 0;

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f)) {
		char *at = strchr(line, '/');

		count += at && !strncmp(at, path, (size_t)folder_bytes);
	}
	fclose(f);
	return count;
}

int __real_verify_units(struct shard_reader *r, struct verify_room *room, uint32_t group, uint64_t unit, uint64_t count,
			uint64_t *bytes, void (*on_problem)(void *, const struct shard_error *), void *context,
			struct shard_error *err);
int __wrap_verify_units(struct shard_reader *r, struct verify_room *room, uint32_t group, uint64_t unit, uint64_t count,
			uint64_t *bytes, void (*on_problem)(void *, const struct shard_error *), void *context,
			struct shard_error *err);
int __wrap_verify_units(struct shard_reader *r, struct verify_room *room, uint32_t group, uint64_t unit, uint64_t count,
			uint64_t *bytes, void (*on_problem)(void *, const struct shard_error *), void *context,
			struct shard_error *err)
{
	if (counting) {
		pthread_mutex_lock(&lock);
		for (uint64_t u = unit; u < unit + count; u++)
			seen[group]
			    [r->pages->plan_shard + u]++; /* fixtures say there with which record a shard starts */
		pthread_mutex_unlock(&lock);
	}
	if (counting_maps) {
		unsigned maps = maps_of(r->path);

		maps_most = maps > maps_most ? maps : maps_most;
	}
	if (cut_at)
		CHECK_EQ(truncate(r->path, (off_t)cut_at), 0);
	return __real_verify_units(r, room, group, unit, count, bytes, on_problem, context, err);
}

/* ---- fixtures ---- */

static struct path folder;
static struct shard_schema schema;
static const uint64_t sizes[] = {40, 7, 0, 100, 3, 50}; /* 200 records */

static inline const char *in_folder(struct path *p, const char *name)
{
	return tmp(p, "t_verify.%d/%s", (int)getpid(), name);
}

/* Units of 1 in group 0, of 4 in group 1. */
static inline void make_dataset(uint32_t codec)
{
	schema = photo_schema(20, codec);
	schema.group[0].unit_records = 1;
	schema.group[0].chunk_records = codec == SHARD_RAW ? 0 : 1;
	schema.group[1].unit_records = 4;
	new_folder(&folder, "t_verify");
	write_dataset(folder.text, &schema, sizes, COUNT(sizes));
}

static inline uint64_t units_of(uint64_t records)
{
	return records + (records + 3) / 4;
}

struct told {
	char message[400][200];
	unsigned count;
	int worst, slow;
	bool other_thread;
	pthread_t caller;
};

static inline void on_problem(void *context, const struct shard_error *problem)
{
	struct told *t = context;

	t->other_thread = t->other_thread || !pthread_equal(t->caller, pthread_self());
	snprintf(t->message[t->count++], sizeof(t->message[0]), "%d %.180s", problem->status,
		 problem->message + strlen(folder.text));
	if (t->slow)
		usleep((unsigned)t->slow);
}

static inline int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Verify the dataset, all problems told and sorted. */
static inline int verify(uint32_t threads, struct told *t, struct shard_verify_report *report, struct shard_error *err)
{
	struct shard_verify_options o = {
		.size = sizeof(o), .thread_count = threads, .context = t, .problem = on_problem, .sha256 = 1};
	struct shard_dataset *ds;
	int rc;

	t->count = 0;
	t->caller = pthread_self();
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	rc = shard_dataset_verify(ds, &o, report, err);
	shard_dataset_close(ds);
	qsort(t->message, t->count, sizeof(t->message[0]), by_text);
	CHECK(!t->other_thread);
	return rc;
}

/* ---- damage ---- */

/* Flip a byte in each record of a shard. */
static inline void damage_records(const char *name, uint64_t first, uint64_t count)
{
	struct path p;
	uint64_t offset = section_of(in_folder(&p, name), 1, 0).offset;

	for (uint64_t i = first; i < first + count; i++)
		file_flip(p.text, offset + i * schema.group[0].stride + 77, 0x10);
}

static inline void damage_much(void)
{
	struct path p, q;

	damage_records("0.shard", 3, 20);
	damage_records("3.shard", 0, 100);
	damage_records("5.shard", 49, 1);
	in_folder(&p, "1.shard");
	/* a table: the shard goes no further */
	file_flip(p.text, section_of(p.text, 4, 0).offset + 8, 1);
	unlink(in_folder(&p, "4.shard"));				       /* D1 */
	file_copy(in_folder(&p, "2.shard"), in_folder(&q, "not named.shard")); /* D7 */
}

#endif
