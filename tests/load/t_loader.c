/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_loader.c - which rows come when, on how many ranks, and what they hold; and the life of a
 * loader
 *
 * The order is computed a second time here, from format/ORDER.md, for datasets small enough for a
 * table.
 */
#include <sys/wait.h>

#include "shard_pack.h"
#include "tests/store/fixture.h"

#define RECORDS 103u
static const uint64_t sizes[] = {40, 1, 0, 62};

static struct path folder;
static struct shard_schema schema;
static struct shard_dataset *ds;

/*
 * Pixels in a group of 4,800 bytes, which is delivered as it lies; label and weight in one of 32,
 * field by field.
 */
static void open_photos(void)
{
	shard_dataset_close(ds);
	ds = NULL;
	schema = photo_schema(40, SHARD_RAW);
	new_folder(&folder, "t_loader");
	write_dataset(folder.text, &schema, sizes, COUNT(sizes));
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
}

static struct shard_loader *open_loader(struct shard_loader_options o)
{
	struct shard_loader *l;

	o.size = sizeof(o);
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	return l;
}

#define LOADER(...) open_loader((struct shard_loader_options){__VA_ARGS__})

/* ---- ORDER.md, parts 2 to 4 and 7, once more ---- */

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint64_t absorb(uint64_t h, uint64_t x)
{
	return mix((h ^ x) + UINT64_C(0x9e3779b97f4a7c15));
}

static void expected_order(uint64_t *order, uint64_t n, bool shuffled, uint64_t seed, uint64_t epoch)
{
	uint64_t key = absorb(absorb(absorb(0, seed), epoch), 1);

	for (uint64_t i = 0; i < n; i++)
		order[i] = i;
	for (uint64_t i = n; shuffled && i-- > 1;) {
		uint64_t word = mix(key + (i + 1) * UINT64_C(0x9e3779b97f4a7c15));
		uint64_t k = (uint64_t)((unsigned __int128)word * (i + 1) >> 64), was = order[i];

		order[i] = order[k];
		order[k] = was;
	}
}

/* What rank `rank` of `world` gets as row `row` of step `step` when it began at position 0. */
static uint64_t expected_position(uint32_t rank, uint32_t world, uint32_t batch, uint64_t step, uint32_t row)
{
	return (step * batch + row) * world + rank;
}

TEST(the_expected_order_is_that_of_the_test_vectors)
{
	static const uint64_t want[4] = {1, 2, 9, 6}, other[4] = {9, 2, 5, 4};
	uint64_t order[10];

	expected_order(order, 10, true, 1, 0);
	CHECK_MEM(order, want, sizeof(want));
	expected_order(order, 10, true, 1, 1);
	CHECK_MEM(order, other, sizeof(other));
}

/* ---- what a batch holds ---- */

static void check_rows(const struct shard_batch *b)
{
	const uint64_t label_bytes = schema.field[PHOTO_LABEL].bytes, weight_bytes = schema.field[PHOTO_WEIGHT].bytes;

	CHECK_EQ(b->group[0].stride, schema.group[0].stride);
	CHECK_EQ((uintptr_t)b->group[0].data % 4096, 0);
	CHECK(b->field[PHOTO_IMAGE].data == b->group[0].data && b->field[PHOTO_IMAGE].stride == b->group[0].stride);
	CHECK_EQ(b->field[PHOTO_LABEL].stride, label_bytes); /* dense */
	CHECK_EQ(b->field[PHOTO_WEIGHT].stride, weight_bytes);
	CHECK_EQ((uintptr_t)b->field[PHOTO_LABEL].data % 4096, 0);
	CHECK_EQ((uintptr_t)b->field[PHOTO_WEIGHT].data % 4096, 0);
	CHECK(b->group[1].data == b->field[PHOTO_LABEL].data && b->group[1].stride == label_bytes);
	for (uint32_t i = 0; i < b->record_count; i++) {
		uint8_t want[32];

		photo_record(&schema, 1, b->record[i], want);
		check_photo(&schema, 0, b->record[i], (const uint8_t *)b->group[0].data + i * b->group[0].stride);
		CHECK_MEM((const uint8_t *)b->field[PHOTO_LABEL].data + i * label_bytes,
			  want + schema.field[PHOTO_LABEL].offset, label_bytes);
		CHECK_MEM((const uint8_t *)b->field[PHOTO_WEIGHT].data + i * weight_bytes,
			  want + schema.field[PHOTO_WEIGHT].offset, weight_bytes);
	}
}

TEST(each_row_is_the_record_that_it_says)
{
	struct shard_loader *l;
	struct shard_batch b;

	open_photos();
	l = LOADER(.batch_records = 10, .order.seed = 3, .tail = SHARD_KEEP);
	for (int step = 0; step < 11; step++) {
		CHECK_OK(shard_loader_next(l, &b, &fixture_err));
		check_rows(&b);
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	CHECK_EQ(shard_loader_next(l, &b, NULL), SHARD_END);
	shard_loader_close(l);
	shard_loader_close(NULL);
}

/* The other way round: everything in small groups, and some of it compressed. */
TEST(groups_of_every_kind)
{
	const uint64_t two[] = {9, 14};

	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
		struct shard_loader *l;
		struct shard_batch b;

		STORY("codec %u", codec);
		shard_dataset_close(ds);
		ds = NULL;
		schema = photo_schema(8, codec); /* 192 bytes: delivered field by field */
		new_folder(&folder, "t_loader");
		write_dataset(folder.text, &schema, two, 2);
		CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
		l = LOADER(.batch_records = 5, .order.seed = 3, .tail = SHARD_KEEP);
		for (int step = 0; step < 5; step++) {
			CHECK_OK(shard_loader_next(l, &b, &fixture_err));
			CHECK_EQ(b.field[PHOTO_IMAGE].stride, 192);
			for (uint32_t i = 0; i < b.record_count; i++) {
				uint8_t want[192];

				photo_record(&schema, 0, b.record[i], want);
				CHECK_MEM((const uint8_t *)b.field[PHOTO_IMAGE].data + i * 192, want, 192);
			}
			CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		}
		shard_loader_close(l);
	}
}

/* ---- which rows, on which rank ---- */

static const struct {
	uint32_t world, batch, shuffle, tail;
} jobs[] = {
	{1, 1, SHARD_SEQUENTIAL, SHARD_DROP},	    {1, 10, SHARD_SEQUENTIAL, SHARD_DROP},
	{1, 10, SHARD_SHUFFLE_GLOBAL, SHARD_DROP},  {1, 10, SHARD_SHUFFLE_GLOBAL, SHARD_PAD},
	{1, 10, SHARD_SHUFFLE_GLOBAL, SHARD_KEEP},  {1, 103, SHARD_SHUFFLE_GLOBAL, SHARD_DROP},
	{1, 104, SHARD_SHUFFLE_GLOBAL, SHARD_KEEP}, {1, 250, SHARD_SHUFFLE_GLOBAL, SHARD_PAD},
	{2, 10, SHARD_SHUFFLE_GLOBAL, SHARD_DROP},  {2, 10, SHARD_SHUFFLE_GLOBAL, SHARD_PAD},
	{3, 7, SHARD_SHUFFLE_GLOBAL, SHARD_DROP},   {3, 7, SHARD_SEQUENTIAL, SHARD_PAD},
	{8, 5, SHARD_SHUFFLE_GLOBAL, SHARD_DROP},   {8, 5, SHARD_SHUFFLE_GLOBAL, SHARD_PAD},
	{8, 1, SHARD_SHUFFLE_GLOBAL, SHARD_PAD},    {8, 12, SHARD_SHUFFLE_GLOBAL, SHARD_DROP},
	{103, 1, SHARD_SHUFFLE_GLOBAL, SHARD_DROP}, {200, 1, SHARD_SHUFFLE_GLOBAL, SHARD_PAD},
};

static uint64_t expected_steps(size_t job)
{
	uint64_t all = (uint64_t)jobs[job].world * jobs[job].batch;

	return jobs[job].tail == SHARD_DROP ? RECORDS / all : (RECORDS + all - 1) / all;
}

/*
 * Two epochs of one rank, compared with the order; every delivered position is counted in `seen`.
 */
static void run_rank(size_t job, uint32_t rank, unsigned seen[2][RECORDS])
{
	const uint32_t world = jobs[job].world, batch = jobs[job].batch;
	struct shard_loader *l = LOADER(.batch_records = batch, .order.seed = 11, .rank = rank, .world = world,
					.order.shuffle = jobs[job].shuffle, .tail = jobs[job].tail);
	uint64_t order[RECORDS], idx[1000], at = 0;
	struct shard_batch b;

	CHECK_EQ(shard_loader_step_count(l), expected_steps(job));
	for (uint64_t epoch = 0; epoch < 2; epoch++) {
		at = 0;
		expected_order(order, RECORDS, jobs[job].shuffle == SHARD_SHUFFLE_GLOBAL, 11, epoch);
		for (uint64_t step = 0; step < expected_steps(job); step++) {
			uint32_t rows = batch;

			STORY("job %zu, rank %u, epoch %" PRIu64 ", step %" PRIu64, job, rank, epoch, step);
			if (jobs[job].tail == SHARD_KEEP && step + 1 == expected_steps(job))
				rows = (uint32_t)(RECORDS - step * batch);
			CHECK_OK(shard_loader_next(l, &b, &fixture_err));
			CHECK_EQ(b.epoch, epoch);
			CHECK_EQ(b.step, step);
			CHECK_EQ(b.position, step * batch * world);
			CHECK_EQ(b.record_count, rows);
			for (uint32_t row = 0; row < rows; row++) {
				uint64_t position = expected_position(rank, world, batch, step, row);
				bool padded = position >= RECORDS;

				CHECK_EQ(b.record[row], order[position % RECORDS]);
				CHECK_EQ(b.row_flags[row], padded ? SHARD_ROW_PADDED : 0);
				seen[epoch][position % RECORDS] += !padded;
				idx[at++] = b.record[row];
			}
			CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		}
		CHECK_EQ(shard_loader_next(l, &b, NULL), SHARD_END);
		if (at && at <= 1000) { /* the order that is told without reading is the one that was read */
			uint64_t told[1000];

			CHECK_OK(shard_loader_order(l, epoch, 0, at, NULL, told, &fixture_err));
			CHECK_MEM(told, idx, at * sizeof(*told));
			CHECK_OK(shard_loader_order(l, epoch, at / 2, at - at / 2, NULL, told, &fixture_err));
			CHECK_MEM(told, idx + at / 2, (at - at / 2) * sizeof(*told));
		}
		CHECK_EQ(shard_loader_order(l, epoch, 0, at + 1, NULL, idx, NULL), SHARD_E_ARGUMENT);
		CHECK_EQ(shard_loader_order(l, epoch, 0, 1, (uint16_t[1]){0}, idx, &fixture_err), SHARD_E_ARGUMENT);
		CHECK_STR(fixture_err.message, "this loader has no mixture; give NULL as component");
	}
	shard_loader_close(l);
}

TEST(ranks_share_one_order)
{
	open_photos();
	for (size_t job = 0; job < COUNT(jobs); job++) {
		unsigned seen[2][RECORDS] = {{0}};
		uint64_t delivered = expected_steps(job) * jobs[job].world * jobs[job].batch;

		for (uint32_t rank = 0; rank < jobs[job].world; rank++)
			run_rank(job, rank, seen);
		/* together the ranks delivered a prefix of the order, each position once */
		for (int epoch = 0; epoch < 2; epoch++)
			for (uint64_t p = 0; p < RECORDS; p++) {
				STORY("job %zu, epoch %d, position %" PRIu64, job, epoch, p);
				CHECK_EQ(seen[epoch][p], p < delivered);
			}
	}
}

/* ---- resume ---- */

struct flat {
	uint64_t record[64], step, position, epoch;
	uint8_t flags[64];
	uint32_t rows;
	int rc;
	uint64_t hash[2];
};

static struct flat take(struct shard_loader *l)
{
	struct flat f = {.rows = 0};
	struct shard_batch b;

	f.rc = shard_loader_next(l, &b, &fixture_err);
	if (f.rc)
		return f;
	f.rows = b.record_count;
	f.step = b.step;
	f.position = b.position;
	f.epoch = b.epoch;
	memcpy(f.record, b.record, b.record_count * sizeof(*b.record));
	memcpy(f.flags, b.row_flags, b.record_count);
	shard_xxh128(b.group[0].data, b.record_count * b.group[0].stride, (uint8_t *)f.hash);
	CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	return f;
}

TEST(a_job_continues_from_any_token)
{
	static const struct shard_loader_options kinds[] = {
		{.batch_records = 9, .order.seed = 5, .tail = SHARD_KEEP},
		{.batch_records = 9, .order.seed = 5, .tail = SHARD_DROP, .rank = 1, .world = 3},
		{.batch_records = 9, .order.seed = 5, .tail = SHARD_PAD, .rank = 2, .world = 3},
		{.batch_records = 9, .order.seed = 5, .tail = SHARD_KEEP, .order.shuffle = SHARD_SEQUENTIAL},
	};

	open_photos();
	for (size_t k = 0; k < COUNT(kinds); k++) {
		struct flat whole[64];
		uint64_t epoch[64], position[64];
		struct shard_loader *l = open_loader(kinds[k]);
		int calls = 3 * (int)shard_loader_step_count(l) + 3;

		for (int i = 0; i < calls; i++) {
			shard_loader_tell(l, &epoch[i], &position[i]);
			whole[i] = take(l);
		}
		shard_loader_close(l);
		for (int from = 0; from < calls; from++) {
			l = open_loader(kinds[k]);
			CHECK_OK(shard_loader_seek(l, epoch[from], position[from], &fixture_err));
			for (int i = from; i < calls; i++) {
				struct flat again;
				uint64_t told_epoch, told_position;

				STORY("kind %zu, from call %d, call %d", k, from, i);
				shard_loader_tell(l, &told_epoch, &told_position); /* a second checkpoint */
				CHECK_EQ(told_epoch, epoch[i]);
				CHECK_EQ(told_position, position[i]);
				if (whole[i].rc == SHARD_END && i == from)
					continue; /* a token at the end of an epoch leads to the next epoch */
				again = take(l);
				CHECK_EQ(again.rc, whole[i].rc);
				CHECK_MEM(&again, &whole[i], sizeof(again));
			}
			shard_loader_close(l);
		}
	}
}

/*
 * From a token a job of another shape continues: what follows is the rest of the same order, each
 * record once.
 */
TEST(a_job_continues_on_more_or_fewer_ranks)
{
	static const uint32_t worlds[] = {1, 2, 3, 8};
	uint64_t order[RECORDS];

	open_photos();
	expected_order(order, RECORDS, true, 5, 2);
	for (size_t w = 0; w < COUNT(worlds); w++)
		for (uint64_t from = 0; from <= RECORDS; from += 17) {
			unsigned seen[RECORDS] = {0};
			uint64_t steps = (RECORDS - from + worlds[w] * 4 - 1) / (worlds[w] * 4);

			for (uint32_t rank = 0; rank < worlds[w]; rank++) {
				struct shard_loader *l = LOADER(.batch_records = 4, .order.seed = 5,
								.order.shuffle = SHARD_SHUFFLE_GLOBAL, .rank = rank,
								.world = worlds[w], .tail = SHARD_PAD);

				CHECK_OK(shard_loader_seek(l, 2, from, &fixture_err));
				for (uint64_t step = 0; step < steps; step++) {
					struct flat f = take(l);

					STORY("world %u, rank %u, from %" PRIu64 ", step %" PRIu64, worlds[w], rank,
					      from, step);
					CHECK_EQ(f.rc, SHARD_OK);
					CHECK_EQ(f.position, from + step * worlds[w] * 4);
					for (uint32_t i = 0; i < f.rows; i++) {
						/*
						 * format/ORDER.md 7: rank q takes the positions
						 * that are q mod R
						 */
						uint64_t d = (rank + worlds[w] - from % worlds[w]) % worlds[w],
							 y = f.position + (uint64_t)i * worlds[w] + d;

						CHECK_EQ(f.record[i], order[y % RECORDS]);
						CHECK_EQ(f.flags[i], y >= RECORDS ? SHARD_ROW_PADDED : 0);
						if (y < RECORDS)
							seen[y]++;
					}
				}
				CHECK_EQ(take(l).rc, SHARD_END);
				shard_loader_close(l);
			}
			for (uint64_t y = 0; y < RECORDS; y++)
				CHECK_EQ(seen[y], y >= from);
		}
}

TEST(seek_knows_its_bounds)
{
	struct shard_loader *l;
	struct shard_error err;
	uint64_t epoch = 9, position = 9;

	open_photos();
	l = LOADER(.batch_records = 10);
	CHECK_EQ(shard_loader_seek(l, 0, RECORDS + 1, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "position is 104; must be at most 103, the records of an epoch"));
	CHECK_EQ(shard_loader_seek(l, 0, UINT64_MAX, NULL), SHARD_E_ARGUMENT);
	shard_loader_tell(l, &epoch, &position);
	CHECK_EQ(epoch, 0);
	CHECK_EQ(position, 0);
	CHECK_OK(shard_loader_seek(l, 7, RECORDS, &fixture_err));
	CHECK_EQ(take(l).rc, SHARD_END);
	CHECK_EQ(take(l).epoch, 8);
	CHECK_OK(shard_loader_seek(l, UINT64_MAX, 50, &fixture_err));
	CHECK_EQ(take(l).epoch, UINT64_MAX);
	shard_loader_close(l);
}

/* ---- slots ---- */

TEST(slots_are_lent_and_given_back)
{
	struct shard_loader *l, *other;
	struct shard_batch b[3], again, foreign;
	struct shard_error err;
	uint64_t record[10], epoch, position;

	open_photos();
	l = LOADER(.batch_records = 10, .slot_count = 3);
	for (int i = 0; i < 3; i++)
		CHECK_OK(shard_loader_next(l, &b[i], &fixture_err));
	memcpy(record, b[0].record, sizeof(record));
	again = b[0];
	for (int i = 0; i < 3; i++) { /* an error that says so, again and again, and nothing is lost by it */
		CHECK_EQ(shard_loader_next(l, &again, &err), SHARD_E_ARGUMENT);
		CHECK(strstr(err.message, "the caller holds all 3 slots"));
		CHECK_MEM(&again, &b[0], sizeof(again));
	}
	shard_loader_tell(l, &epoch, &position);
	CHECK_EQ(position, 30);
	check_rows(&b[0]);
	check_rows(&b[2]);
	CHECK_OK(shard_loader_release(l, &b[1], &fixture_err)); /* in any order */
	CHECK_EQ(shard_loader_release(l, &b[1], &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "the caller does not hold slot "));
	again.slot = 3; /* behind the last one: the address sanitizer sees a look at it */
	CHECK_EQ(shard_loader_release(l, &again, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "the caller does not hold slot 3: "));
	CHECK_OK(shard_loader_next(l, &b[1], &fixture_err));
	CHECK_EQ(b[1].position, 30);
	check_rows(&b[1]);

	CHECK_OK(shard_loader_seek(l, 4, 0, &fixture_err)); /* lent batches stay valid */
	check_rows(&b[0]);
	CHECK_MEM(record, b[0].record, sizeof(record));

	other = LOADER(.batch_records = 10);
	CHECK_EQ(shard_loader_release(other, &b[0], &err), SHARD_E_ARGUMENT); /* before its first next */
	CHECK_OK(shard_loader_next(other, &foreign, &fixture_err));
	CHECK_EQ(shard_loader_release(l, &foreign, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_loader_release(other, &b[0], &err), SHARD_E_ARGUMENT);
	foreign.slot = UINT32_MAX;
	CHECK_EQ(shard_loader_release(other, &foreign, &err), SHARD_E_ARGUMENT);
	shard_loader_close(other);
	for (int i = 0; i < 3; i++)
		CHECK_OK(shard_loader_release(l, &b[i], &fixture_err));
	shard_loader_close(l);
}

TEST(four_slots_unless_told_otherwise)
{
	struct shard_loader *l;
	struct shard_batch b;

	open_photos();
	l = LOADER(.batch_records = 3);
	for (int i = 0; i < 4; i++)
		CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	CHECK_EQ(shard_loader_next(l, &b, NULL), SHARD_E_ARGUMENT);
	shard_loader_close(l); /* with all of them lent */
}

/* ---- life ---- */

TEST(epochs_follow_each_other)
{
	uint64_t first[RECORDS], later[RECORDS];
	struct shard_loader *l;

	open_photos();
	l = LOADER(.batch_records = 50, .order.shuffle = SHARD_SHUFFLE_GLOBAL, .tail = SHARD_KEEP);
	for (uint64_t epoch = 0; epoch < 4; epoch++) {
		uint64_t *to = epoch ? later : first;
		unsigned seen[RECORDS] = {0};
		uint64_t at = 0;

		for (int step = 0; step < 3; step++) {
			struct flat f = take(l);

			CHECK_EQ(f.rc, SHARD_OK);
			CHECK_EQ(f.epoch, epoch);
			for (uint32_t i = 0; i < f.rows; i++)
				to[at++] = f.record[i];
		}
		CHECK_EQ(at, RECORDS);
		CHECK_EQ(take(l).rc, SHARD_END);
		for (uint64_t i = 0; i < RECORDS; i++)
			seen[to[i]]++;
		for (uint64_t i = 0; i < RECORDS; i++)
			CHECK_EQ(seen[i], 1);
		CHECK(!epoch || memcmp(first, later, sizeof(first)));
	}
	shard_loader_close(l);
}

/* It would end one epoch after the other and never deliver anything. */
TEST(an_empty_dataset_is_refused)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 4};
	struct shard_dataset *empty;
	struct shard_loader *l = NULL;
	struct shard_error err;

	CHECK_OK(shard_dataset_open(&empty, "format/golden/dataset_empty", NULL, &fixture_err));
	for (o.tail = SHARD_DROP; o.tail <= SHARD_KEEP; o.tail++)
		for (o.order.shuffle = SHARD_SHUFFLE_GLOBAL; o.order.shuffle <= SHARD_SEQUENTIAL; o.order.shuffle++) {
			STORY("tail %u, shuffle %u", o.tail, o.order.shuffle);
			CHECK_EQ(shard_loader_open(&l, empty, &o, &err), SHARD_E_ARGUMENT);
			CHECK(strstr(err.message, "the dataset has no records"));
			CHECK(!l);
		}
	shard_dataset_close(empty);
}

TEST(a_loader_belongs_to_the_process_of_its_first_next)
{
	struct shard_loader *l, *unused;
	struct shard_batch b;
	int status;
	pid_t pid;

	open_photos();
	l = LOADER(.batch_records = 10);
	unused = LOADER(.batch_records = 10);
	CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct shard_error err = {.message = ""};
		struct shard_batch c;

		if (shard_loader_next(l, &c, &err) != SHARD_E_ARGUMENT || !strstr(err.message, "belongs to process"))
			_exit(2);
		if (shard_loader_next(unused, &c, &err)) /* opened before, first used here: fine */
			_exit(3);
		check_rows(&c);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	shard_loader_close(l);
	shard_loader_close(unused);
}

TEST(an_error_repeats_until_seek)
{
	struct shard_error err, again;
	struct shard_loader *l;
	struct shard_batch b;
	uint64_t offset, epoch, position;
	struct path p;

	open_photos();
	tmp(&p, "t_loader.%d/3.shard", (int)getpid());
	offset = section_of(p.text, 1, 0).offset;
	file_flip(p.text, offset + 5 * schema.group[0].stride, 1); /* record 46 */
	l = LOADER(.batch_records = 10, .order.shuffle = SHARD_SEQUENTIAL, .slot_count = 2);
	for (int step = 0; step < 4; step++) {
		CHECK_OK(shard_loader_next(l, &b, &fixture_err));
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	CHECK_EQ(shard_loader_next(l, &b, &err), SHARD_E_CORRUPT);
	CHECK(strstr(err.message, "3.shard: I44: unit 5 of group 0"));
	for (int i = 0; i < 5; i++) { /* more often than there are slots: none is lost */
		CHECK_EQ(shard_loader_next(l, &b, &again), SHARD_E_CORRUPT);
		CHECK_STR(again.message, err.message);
	}
	CHECK_EQ(shard_loader_next(l, &b, NULL), SHARD_E_CORRUPT);
	file_flip(p.text, offset + 5 * schema.group[0].stride, 1); /* good again: still the same answer */
	CHECK_EQ(shard_loader_next(l, &b, &again), SHARD_E_CORRUPT);
	CHECK_STR(again.message, err.message);
	shard_loader_tell(l, &epoch, &position);
	CHECK_EQ(position, 40); /* where it stands: the batch that could not be had */
	CHECK_OK(shard_loader_seek(l, 0, 40, &fixture_err));
	CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	check_rows(&b);
	CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	CHECK_OK(shard_loader_seek(l, 0, 50, &fixture_err));
	for (int i = 0; i < 2; i++) {
		CHECK_OK(shard_loader_next(l, &b, &fixture_err));
		check_rows(&b);
	}
	CHECK_EQ(b.record[0], 60);
	shard_loader_close(l);
}

/* ---- options ---- */

TEST(options_that_are_refused)
{
	static const struct {
		struct shard_loader_options o;
		const char *says;
	} rows[] = {
		{{.size = 0, .batch_records = 1}, "size"},
		{{.batch_records = 0}, "batch_records is 0"},
		{{.batch_records = 1, .order.shuffle = 4}, "order.shuffle is 4"},
		{{.batch_records = 1, .reserved = 5}, "options: reserved is 5; must be 0"},
		{{.batch_records = 1, .order.reserved = 6}, "options: order.reserved is 6; must be 0"},
		{{.batch_records = 1, .repair.reserved = 7}, "options: repair.reserved is 7; must be 0"},
		{{.batch_records = 1, .tail = 3}, "tail 3"},
		{{.batch_records = 1, .rank = 1}, "rank is 1; must be below world, 1"},
		{{.batch_records = 1, .rank = 3, .world = 3}, "rank is 3; must be below world, 3"},
		{{.batch_records = 1, .world = 2, .tail = SHARD_KEEP}, "SHARD_KEEP needs world 1, not 2"},
		{{.batch_records = 1, .slot_count = 1}, "slot_count is 1"},
		{{.batch_records = 1, .slot_count = 1025}, "slot_count is 1025"},
		{{.batch_records = 1, .thread_count = 257}, "thread_count is 257; must be at most 256"},
		{{.batch_records = UINT32_MAX, .world = 1u << 31}, "in a step"},
		/* it would end epochs for ever */
		{{.batch_records = 104}, "one batch of 104; use batches of at most 103, SHARD_PAD, or SHARD_KEEP"},
		{{.batch_records = 13, .world = 8}, "on each of 8 ranks; use batches of at most 12, or SHARD_PAD"},
		{{.batch_records = 1, .world = 104}, "one on each of 104 ranks; use SHARD_PAD, or at most 103 ranks"},
	};

	open_photos();
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_loader_options o = rows[i].o;
		struct shard_error err = {.message = ""};
		struct shard_loader *l = NULL;

		STORY("%s", rows[i].says);
		o.size = i ? sizeof(o) : 0;
		CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_ARGUMENT);
		if (!strstr(err.message, rows[i].says))
			CHECK_STR(err.message, rows[i].says);
		CHECK(!l);
	}
	/* no batch_records */
	CHECK_EQ(shard_loader_open(&(struct shard_loader *){NULL}, ds, NULL, NULL), SHARD_E_ARGUMENT);
}

/* Of the thread sanitizer, which otherwise ends the process when there is no memory. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* More than any machine has: an error, as often as it is asked for. */
TEST(slots_that_no_memory_can_hold)
{
	struct shard_loader_options o = {
		.size = sizeof(o), .batch_records = UINT32_MAX, .tail = SHARD_PAD, .slot_count = 1024}; /* 20 TB each */
	struct shard_loader *l;

	open_photos();
	CHECK_EQ(shard_loader_open(&l, ds, &o, &fixture_err), SHARD_E_MEMORY);
	CHECK(strstr(fixture_err.message, "1024 slots for batches of 4294967295 rows"));
}

TEST(opening_reads_no_shard)
{
	struct shard_loader *l;
	struct shard_error err;
	struct shard_batch b;
	uint64_t idx[10];
	struct path p;

	open_photos();
	for (int i = 0; i < 4; i++)
		unlink(tmp(&p, "t_loader.%d/%d.shard", (int)getpid(), i));
	l = LOADER(.batch_records = 10);
	CHECK_EQ(shard_loader_step_count(l), 10);
	CHECK_OK(shard_loader_order(l, 5, 3, 10, NULL, idx, &fixture_err));
	CHECK_OK(shard_loader_seek(l, 5, 30, &fixture_err));
	CHECK_EQ(shard_loader_next(l, &b, &err), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, ": D1: "));
	shard_loader_close(l);
	shard_dataset_close(ds);
	ds = NULL;
	remove_tree(folder.text);
}

/* ---- the shuffle that packers use ---- */

TEST(shuffle_is_the_order_of_an_epoch_that_no_loader_reaches)
{
	uint64_t want[RECORDS], got[RECORDS];

	for (uint64_t n = 0; n <= RECORDS; n += n < 4 ? 1 : 33) {
		expected_order(want, n, true, 17, UINT64_MAX);
		STORY("%" PRIu64, n);
		CHECK_OK(shard_pack_order(17, n, 0, n, got, &fixture_err));
		CHECK_MEM(got, want, n * sizeof(*got));
		CHECK_OK(shard_pack_order(17, n, n / 3, n - n / 3, got, &fixture_err));
		CHECK_MEM(got, want + n / 3, (n - n / 3) * sizeof(*got));
	}
	CHECK_EQ(shard_pack_order(1, 10, 0, 11, got, NULL), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_pack_order(1, 10, 11, 0, got, NULL), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_pack_order(1, 10, 2, UINT64_MAX, got, NULL), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_pack_order(1, (UINT64_C(1) << 62) + 1, 0, 1, got, NULL), SHARD_E_ARGUMENT);
}

TEST_MAIN()
