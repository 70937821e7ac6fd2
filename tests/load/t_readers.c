/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_readers.c - a dataset of more shards than a process may map is read all the same: shards are
 * closed and opened again, and nobody notices
 *
 * The limit is set to a few here.  The maps of the process are counted as the kernel lists them.
 */
#include <pthread.h>

#include "libshard/dataset/dataset.h"
#include "shard.h"
#include "tests/load/batches.h"
#include "tests/load/kinds.h"

#define SHARDS	40u
#define MOST	3u
#define THREADS 4u
#if defined(__SANITIZE_THREAD__)
#define READS 150u
#else
#define READS 600u
#endif

static void open_many(uint32_t side, uint32_t codec, uint64_t most)
{
	uint64_t sizes[SHARDS];

	for (unsigned i = 0; i < SHARDS; i++)
		sizes[i] = i % 5; /* some are empty */
	open_photos(side, codec, sizes, SHARDS);
	ds->readers.most = most;
}

/* How many shards of the folder does this process map? */
static unsigned maps(void)
{
	char line[1024];
	unsigned count = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		count += strstr(line, folder.text) && strstr(line, ".shard");
	fclose(f);
	return count;
}

/* Returns whether the record is right. */
static bool reads_right(uint64_t idx, struct shard_error *err)
{
	uint8_t got[2][8192];
	void *dst[2] = {got[0], got[1]};
	bool right = !shard_dataset_read(ds, &idx, 1, dst, err);

	for (uint32_t g = 0; right && g < 2; g++)
		right = !memcmp(got[g], content[g] + idx * schema.group[g].stride, (size_t)schema.group[g].stride);
	return right;
}

TEST(records)
{
	for (int pass = 0; pass < 3; pass++) {
		unsigned most = 0;

		open_many(8, SHARD_RAW, pass < 2 ? MOST : 1000);
		for (unsigned i = 0; i < 3 * record_total; i++) {
			unsigned now;

			CHECK(reads_right(pass == 1 ? i * 7 % record_total : i % record_total, &fixture_err));
			now = maps();
			most = now > most ? now : most;
		}
		if (pass < 2) /* one that is opened, and what waits for the end of two eras */
			CHECK(most <= 2 * MOST + 1);
		else
			CHECK_EQ(most, SHARDS / 5 * 4); /* the control: all that have records */
	}
}

TEST(many_records_in_one_call)
{
	uint64_t idx[RECORDS_CAP * 12], count;
	uint8_t *got;
	void *dst[2] = {NULL};

	open_many(8, SHARD_RAW, MOST);
	count = record_total * 12;
	got = malloc((size_t)(count * schema.group[1].stride));
	for (uint64_t i = 0; i < count; i++)
		idx[i] = i * 11 % record_total;
	dst[1] = got;
	CHECK_OK(shard_dataset_read(ds, idx, (size_t)count, dst, &fixture_err));
	for (uint64_t i = 0; i < count; i++)
		CHECK(!memcmp(got + i * schema.group[1].stride, content[1] + idx[i] * schema.group[1].stride,
			      (size_t)schema.group[1].stride));
	free(got);
	for (unsigned i = 0; i < 20; i++)
		CHECK(reads_right(i * 13 % record_total, &fixture_err));
	CHECK(maps() <= 2 * MOST + 1);
}

TEST(what_a_program_has_stays)
{
	struct shard_reader *r[3], *again;
	struct shard_view view[3];

	open_many(8, SHARD_RAW, MOST);
	for (uint64_t i = 0; i < 3; i++) {
		CHECK_OK(shard_dataset_reader(ds, 1 + 5 * i, &r[i], &fixture_err));
		CHECK_OK(shard_reader_view(r[i], 1, 0, &view[i], &fixture_err));
	}
	for (unsigned i = 0; i < 4 * record_total; i++)
		CHECK(reads_right(i % record_total, &fixture_err));
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t first = ds->first_record[1 + 5 * i];

		CHECK_OK(shard_dataset_reader(ds, 1 + 5 * i, &again, &fixture_err));
		CHECK(again == r[i]);
		CHECK(!memcmp(view[i].data, content[1] + first * schema.group[1].stride, view[i].bytes));
	}
}

TEST(columns)
{
	const struct shard_field *field;
	uint8_t *got;

	open_many(8, SHARD_RAW, MOST);
	field = shard_dataset_schema(ds)->field;
	got = malloc((size_t)(record_total * field->bytes));
	CHECK_OK(shard_dataset_column(ds, field, 0, record_total, got, &fixture_err));
	for (uint64_t i = 0; i < record_total; i++)
		CHECK(!memcmp(got + i * field->bytes, content[field->group] + i * field->stride + field->offset,
			      (size_t)field->bytes));
	free(got);
	CHECK(maps() <= 2 * MOST + 1);
}

static void take_epochs(struct shard_loader_options o, unsigned epochs)
{
	struct shard_loader *l;
	struct wanted w;
	struct shard_batch b;

	wanted_open(&w, o);
	l = loader_of(&w);
	for (unsigned ends = 0; ends < epochs && !w.complaint[0];) {
		int rc = wanted_next(&w, l, &b);

		ends += rc == SHARD_END;
		if (rc == SHARD_OK)
			CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	close_loader(l);
	CHECK_NO_COMPLAINT(&w);
}

TEST(loaders)
{
	static const uint32_t paths[] = {SHARD_PATH_AUTO, SHARD_PATH_MAP, SHARD_PATH_PREAD, SHARD_PATH_DIRECT};

	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++)
		for (size_t p = 0; p < COUNT(paths); p++)
			for (size_t kind = 0; kind < KINDS; kind++) {
				struct shard_loader_options o = of_kind(kind);

				STORY("codec %u, path %u, kind %zu", codec, paths[p], kind);
				o.path = paths[p];
				o.thread_count = 3;
				o.tail = SHARD_KEEP;
				open_many(kind == IN_WINDOWS ? 8 : 40, codec, MOST);
				take_epochs(o, 2);
			}
}

static void *read_some(void *context)
{
	struct prng p = {(uintptr_t)context};
	struct shard_error err = {.message = ""};
	struct shard_reader *r;
	uintptr_t wrong = 0;

	for (unsigned i = 0; i < READS; i++) {
		wrong += !reads_right(prng_below(&p, record_total), &err);
		if (i % 64 == 63) /* and few are kept */
			wrong += shard_dataset_reader(ds, prng_below(&p, 3), &r, &err) != SHARD_OK;
	}
	return (void *)wrong; /* NOLINT(performance-no-int-to-ptr) */
}

TEST(threads)
{
	pthread_t thread[THREADS];
	void *wrong;

	open_many(8, SHARD_RAW, MOST);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, read_some, (void *)(i + 1)), 0); /* NOLINT */
	for (unsigned i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(thread[i], &wrong), 0);
		CHECK(!wrong);
	}
	/*
	 * While the thread that made room was not run, others may have opened all shards.  Nobody
	 * is inside any more.
	 */
	for (unsigned i = 0; i < 3; i++)
		readers_make_room(&ds->readers, true);
	CHECK(maps() <= 3);
	for (unsigned i = 0; i < 20; i++)
		CHECK(reads_right(i * 13 % record_total, &fixture_err));
	CHECK(maps() <= 2 * MOST + 1 + 3);
}

TEST_MAIN()
