/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_stage.c - chunks that are kept decoded: each is decoded once in an epoch, and whatever the
 * stage holds, batches are the same
 *
 * What a batch must hold is known from the fixture, and its order from batches.h.  Decodings are
 * counted where the store makes them.  A stage that hands out the wrong block, and one that is too
 * small, must be noticed.
 *
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=reader_read_chunk,--wrap=stage_at
 * TIMEOUT: 300
 */
#include <stdatomic.h>
#include <sys/wait.h>

#include "libshard/dataset/dataset.h"
#include "libshard/feed/feed.h"
#include "shard_inspect.h"
#include "tests/load/batches.h"

#define SHARDS 3u
#define UNIT   8u /* records of a run, of the longest chunk, and what all shards are multiples of */
static const uint64_t whole[SHARDS] = {144, 96, 56}, uneven[SHARDS] = {101, 3, 150};

enum kind { LARGE_AND_SMALL, BOTH_SMALL, RAW_AND_SMALL, KINDS };
static const char *const kind_name[] = {"large and small chunks", "small chunks", "raw images, small chunks"};

/* ---- what is seen of a loader at work ---- */

static atomic_uint decodings[SHARDS][2][RECORDS_CAP]; /* of each chunk */
static atomic_uint decodings_total;
static atomic_uint last_epoch; /* steps of later ones wait */
static bool wrong_block;

int __real_slot_fill(struct row_source *source, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		     struct shard_error *err);
int __wrap_slot_fill(struct row_source *source, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		     struct shard_error *err);
int __real_reader_read_chunk(struct shard_reader *r, uint32_t group, uint64_t idx, bool check, uint8_t *dst,
			     struct shard_error *err);
int __wrap_reader_read_chunk(struct shard_reader *r, uint32_t group, uint64_t idx, bool check, uint8_t *dst,
			     struct shard_error *err);
uint8_t *__real_stage_at(const struct stage *s, uint32_t block);
uint8_t *__wrap_stage_at(const struct stage *s, uint32_t block);

int __wrap_slot_fill(struct row_source *source, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		     struct shard_error *err)
{
	while (s->place.epoch > atomic_load(&last_epoch))
		usleep(100);
	return __real_slot_fill(source, scratch, s, counts, err);
}

int __wrap_reader_read_chunk(struct shard_reader *r, uint32_t group, uint64_t idx, bool check, uint8_t *dst,
			     struct shard_error *err)
{
	for (unsigned i = 0; i < SHARDS; i++)
		if (readers_peek(&ds->readers, i) == r)
			atomic_fetch_add(&decodings[i][group][idx], 1);
	atomic_fetch_add(&decodings_total, 1);
	return __real_reader_read_chunk(r, group, idx, check, dst, err);
}

uint8_t *__wrap_stage_at(const struct stage *s, uint32_t block)
{
	return __real_stage_at(s, wrong_block && block ? block - 1 : block);
}

static void forget_decodings(void)
{
	memset((void *)decodings, 0, sizeof(decodings));
	atomic_store(&decodings_total, 0);
	atomic_store(&last_epoch, UINT32_MAX);
}

/* ---- datasets ---- */

/* Images of 40 x 40 are large; the others are delivered field by field. */
static void open_packed(enum kind kind, const uint64_t *sizes)
{
	schema = photo_schema(kind == BOTH_SMALL ? 20 : 40, kind == RAW_AND_SMALL ? SHARD_RAW : SHARD_LZ4);
	schema.group[1].codec = SHARD_LZ4;
	schema.group[1].unit_records = schema.group[1].chunk_records = UNIT;
	if (kind != RAW_AND_SMALL)
		schema.group[0].unit_records = schema.group[0].chunk_records = kind == BOTH_SMALL ? UNIT : UNIT / 2;
	make_dataset("t_stage", sizes, SHARDS);
	forget_decodings();
}

/* 37 runs in lanes of several windows, and a rest. */
static struct shard_loader_options windows(uint32_t threads, uint32_t lanes)
{
	return (struct shard_loader_options){.batch_records = 5,
					     .order.seed = 3,
					     .slot_count = 3,
					     .thread_count = threads,
					     .order.shuffle = SHARD_SHUFFLE_WINDOWS,
					     .order.run_records = UNIT,
					     .order.phase_unit_records = UNIT,
					     .order.window_runs = lanes > 4 ? 1 : 2,
					     .order.lane_count = lanes};
}

static uint64_t chunk_count(const uint64_t *sizes)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SHARDS; i++)
		for (uint32_t g = 0; g < 2; g++)
			if (schema.group[g].codec != SHARD_RAW)
				n += (sizes[i] + schema.group[g].unit_records - 1) / schema.group[g].unit_records;
	return n;
}

static struct wanted wanted;

/* ---- each chunk once ---- */

static unsigned most_decodings(void)
{
	unsigned most = 0;

	for (unsigned i = 0; i < SHARDS; i++)
		for (uint32_t g = 0; g < 2; g++)
			for (uint64_t c = 0; c < RECORDS_CAP; c++)
				most = decodings[i][g][c] > most ? decodings[i][g][c] : most;
	return most;
}

static unsigned seen_most, seen_total; /* in that epoch: decodings of a chunk, and of all */

/* Epoch 0 of one rank, while no later one can begin.  Returns the chunks that its rows are in. */
static uint64_t load_epoch(struct shard_loader_options o, struct shard_loader_stats *stats)
{
	static bool due[SHARDS][2][RECORDS_CAP];
	struct shard_error err;
	struct shard_batch b;
	struct shard_loader *l;
	uint64_t chunks = 0;

	forget_decodings();
	atomic_store(&last_epoch, 0);
	memset(due, 0, sizeof(due));
	wanted_open(&wanted, o);
	l = loader_of(&wanted);
	while (wanted_next(&wanted, l, &b) == SHARD_OK) {
		for (uint32_t i = 0; i < b.record_count; i++)
			for (uint32_t g = 0; g < 2; g++) {
				uint64_t inside = b.record[i];
				unsigned shard = 0;

				while (inside >= whole[shard])
					inside -= whole[shard++];
				inside /= schema.group[g].unit_records;
				chunks += schema.group[g].codec != SHARD_RAW && !due[shard][g][inside];
				due[shard][g][inside] = true;
			}
		CHECK_OK(shard_loader_release(l, &b, &err));
	}
	CHECK_NO_COMPLAINT(&wanted);
	shard_loader_stats(l, stats);
	seen_most = most_decodings();
	seen_total = atomic_load(&decodings_total);
	atomic_store(&last_epoch, UINT32_MAX);
	close_loader(l);
	return chunks;
}

TEST(each_chunk_is_decoded_once)
{
	static const uint32_t world[] = {1, 2, 8};

	for (enum kind kind = 0; kind < KINDS; kind++) {
		open_packed(kind, whole);
		for (uint64_t seed = 0; seed < 4; seed++)
			for (uint32_t threads = 1; threads <= 4; threads++)
				for (unsigned w = 0; w < COUNT(world); w++) {
					struct shard_loader_options o = windows(threads, world[w] == 8 ? 8 : 4);
					struct shard_loader_stats stats;
					uint64_t due;

					STORY("%s, %u threads, world %u, seed %" PRIu64, kind_name[kind], threads,
					      world[w], seed);
					o.order.seed = seed;
					o.tail = world[w] == 1 ? SHARD_KEEP : SHARD_DROP;
					o.world = world[w];
					o.rank = (uint32_t)seed % world[w];
					due = load_epoch(o, &stats);
					CHECK_EQ(stats.decoded_chunk_count, due);
					CHECK_EQ(seen_most, 1);
					CHECK_EQ(stats.unfinished_chunk_count, 0);
					CHECK(world[w] != 1 || due == chunk_count(whole));
				}
	}
}

/* The control, and what a stage that is too small costs. */
TEST(a_stage_that_is_too_small_decodes_again)
{
	struct shard_loader_options o = windows(2, 4);
	struct shard_loader_stats stats;

	open_packed(LARGE_AND_SMALL, whole);
	o.tail = SHARD_KEEP;
	o.stage_bytes = 8 * UNIT * schema.group[0].stride;
	CHECK(load_epoch(o, &stats) < stats.decoded_chunk_count);
	CHECK(stats.stage_bytes && stats.stage_bytes <= o.stage_bytes);
	CHECK(stats.unfinished_chunk_count > 0);
	CHECK(seen_most > 1);
	CHECK_EQ(stats.decoded_chunk_count, seen_total);
	o.stage_bytes = 1; /* no block at all */
	load_epoch(o, &stats);
	CHECK_EQ(stats.stage_bytes, 0);
	CHECK(stats.decoded_chunk_count > 2 * chunk_count(whole));
}

/* In their order, a whole chunk needs no stage, and the others a few blocks. */
TEST(sequential_epochs_decode_once_too)
{
	struct shard_loader_options o = {.batch_records = 24,
					 .slot_count = 2,
					 .thread_count = 1,
					 .order.shuffle = SHARD_SEQUENTIAL,
					 .tail = SHARD_KEEP};
	struct shard_loader_stats stats;

	for (enum kind kind = 0; kind < KINDS; kind++)
		for (o.batch_records = 3; o.batch_records < 30; o.batch_records += 7)
			for (o.thread_count = 1; o.thread_count <= 3; o.thread_count += 2) {
				STORY("%s, %u threads, batches of %u", kind_name[kind], o.thread_count,
				      o.batch_records);
				open_packed(kind, whole);
				CHECK_EQ(load_epoch(o, &stats), chunk_count(whole));
				CHECK_EQ(stats.decoded_chunk_count, chunk_count(whole));
			}
}

/* ---- the same batches ---- */

static void consume_epochs(struct shard_loader_options o, unsigned calls)
{
	struct lent lent = {.count = 0};
	struct prng p = {o.order.seed};
	struct shard_loader *l;

	wanted_open(&wanted, o);
	l = loader_of(&wanted);
	consume(&wanted, l, &lent, &p, calls, 1);
	give_all(&wanted, l, &lent);
	CHECK_NO_COMPLAINT(&wanted);
	close_loader(l);
}

TEST(any_stage_delivers_the_same)
{
	for (unsigned shards = 0; shards < 2; shards++)
		for (enum kind kind = 0; kind < KINDS; kind++) {
			open_packed(kind, shards ? uneven : whole);
			for (uint32_t shuffle = SHARD_SEQUENTIAL; shuffle <= SHARD_SHUFFLE_WINDOWS; shuffle++)
				for (uint32_t threads = 1; threads <= 7; threads += 3)
					for (unsigned blocks = 0; blocks < 40; blocks = 3 * blocks + 1) {
						struct shard_loader_options o = {.batch_records = 9,
										 .order.seed = blocks,
										 .order.shuffle = shuffle,
										 .thread_count = threads,
										 .slot_count = 4};
						if (shuffle == SHARD_SHUFFLE_WINDOWS)
							o = windows(threads, 3);
						o.stage_bytes =
							blocks * UNIT * schema.group[kind == RAW_AND_SMALL].stride;
						o.tail = SHARD_PAD;
						STORY("%s, shards %u, shuffle %u, %u threads, %u blocks",
						      kind_name[kind], shards, shuffle, threads, blocks);
						consume_epochs(o, 80);
					}
		}
}

TEST(ranks_seeks_and_early_exits)
{
	struct prng p = {11};

	for (unsigned round = 0; round < 200; round++) {
		struct shard_loader_options o =
			windows(1 + (uint32_t)prng_below(&p, 4), 1 + (uint32_t)prng_below(&p, 9));
		struct lent lent = {.count = 0};
		struct shard_loader *l;

		if (round % 50 == 0)
			open_packed((enum kind)(round / 50 % KINDS), round % 100 ? uneven : whole);
		STORY("round %u", round);
		o.world = 1u << prng_below(&p, 4);
		o.rank = (uint32_t)prng_below(&p, o.world);
		o.tail = SHARD_PAD;
		o.stage_bytes = prng_below(&p, 3) * prng_below(&p, 200000);
		wanted_open(&wanted, o);
		l = loader_of(&wanted);
		for (unsigned i = 0; i < 3 && !wanted.complaint[0]; i++) {
			uint64_t epoch = prng_below(&p, 3), position = prng_below(&p, record_total);

			consume(&wanted, l, &lent, &p, (unsigned)prng_below(&p, 9), 1);
			CHECK_OK(shard_loader_seek(l, epoch, position, &fixture_err));
			wanted_seek(&wanted, epoch, position);
		}
		CHECK_NO_COMPLAINT(&wanted);
		close_loader(l); /* with batches in hand */
	}
}

/* The control: bytes of another chunk are not what batches.h wants. */
TEST(a_wrong_block_is_noticed)
{
	struct shard_loader_options o = windows(1, 4);
	struct lent lent = {.count = 0};
	struct prng p = {1};
	struct shard_loader *l;

	open_packed(BOTH_SMALL, whole);
	wanted_open(&wanted, o);
	wrong_block = true;
	l = loader_of(&wanted);
	consume(&wanted, l, &lent, &p, 40, 1);
	close_loader(l);
	wrong_block = false;
	CHECK(wanted.complaint[0]);
}

/* ---- hashes ---- */

TEST(each_unit_is_hashed_once)
{
	for (enum kind kind = 0; kind < KINDS; kind++)
		for (uint32_t check = SHARD_CHECK_DEVICE; check <= SHARD_CHECK_FIRST; check++)
			for (uint64_t stage_bytes = 0; stage_bytes < 2; stage_bytes++) {
				struct shard_dataset_options d = {.size = sizeof(d), .check = check};
				struct shard_loader_options o = windows(3, 4);
				struct shard_loader_stats stats;
				uint64_t units;

				open_packed(kind, whole);
				reopen(&d);
				units = chunk_count(whole);
				STORY("%s, check %u, stage %s", kind_name[kind], check,
				      stage_bytes ? "of nothing" : "as wanted");
				o.tail = SHARD_KEEP;
				o.stage_bytes = stage_bytes;
				load_epoch(o, &stats);
				if (kind == RAW_AND_SMALL)
					units += record_total;
				if (check == SHARD_CHECK_DEVICE) /* some more than once, if they left the memory */
					CHECK(stats.checked_unit_count >= units);
				else if (check == SHARD_CHECK_FIRST)
					CHECK_EQ(stats.checked_unit_count, units);
				else if (check == SHARD_CHECK_NEVER)
					CHECK_EQ(stats.checked_unit_count, 0);
				else /* raw units as they are delivered, chunks as they are decoded */
					CHECK_EQ(stats.checked_unit_count,
						 stats.decoded_chunk_count +
							 (kind == RAW_AND_SMALL ? record_total : 0));
				load_epoch(o, &stats);
				CHECK(check != SHARD_CHECK_FIRST || !stats.checked_unit_count);
			}
}

/* ---- damage ---- */

static bool good[RECORDS_CAP];

/* Which records shard_dataset_read() takes for damaged. */
static unsigned find_good(void)
{
	uint8_t *record[2] = {malloc(schema.group[0].stride), malloc(schema.group[1].stride)};
	void *dst[SHARD_GROUPS_MAX] = {record[0], record[1]};
	unsigned bad = 0;

	for (uint64_t i = 0; i < record_total; i++) {
		good[i] = !shard_dataset_read(ds, &i, 1, dst, NULL);
		bad += !good[i];
	}
	free(record[0]);
	free(record[1]);
	return bad;
}

static void check_repaired(struct wanted *w, const struct shard_batch *b, uint32_t policy)
{
	static uint8_t zeros[8192];

	for (uint32_t i = 0; i < b->record_count; i++) {
		uint64_t due = w->order[b->epoch][b->position + i], record = due;

		CHECK_EQ(b->row_flags[i], good[due]			 ? 0
					  : policy == SHARD_CORRUPT_MASK ? SHARD_ROW_MASKED
									 : SHARD_ROW_SUBSTITUTED);
		while (policy == SHARD_CORRUPT_SUBSTITUTE && !good[record])
			record = (record + 1) % record_total;
		CHECK_EQ(b->record[i], record);
		if (good[record])
			check_bytes(w, b, i);
		for (uint32_t f = 0; !good[record] && f < schema.field_count; f++)
			CHECK_MEM((const uint8_t *)b->field[f].data + i * b->field[f].stride, zeros,
				  (size_t)schema.field[f].bytes);
	}
	CHECK_NO_COMPLAINT(w);
}

TEST(damaged_chunks_are_exactly_their_rows)
{
	for (enum kind kind = 0; kind < KINDS; kind++) {
		open_packed(kind, whole);
		damage_record(&folder, 1, 1, 40);
		damage_record(&folder, 2, 1, 7);
		if (kind != RAW_AND_SMALL)
			damage_record(&folder, 0, 0, 100);
		reopen(NULL);
		CHECK_EQ(find_good(), 2 * UNIT + (kind == RAW_AND_SMALL ? 0 : schema.group[0].unit_records));
		for (uint32_t policy = SHARD_CORRUPT_SUBSTITUTE; policy <= SHARD_CORRUPT_MASK; policy++)
			for (uint32_t threads = 1; threads <= 3; threads += 2)
				for (uint64_t stage_bytes = 0; stage_bytes <= 100000;
				     stage_bytes = stage_bytes * 50000 + 1) {
					struct shard_loader_options o = windows(threads, 4);
					struct shard_loader *l;
					struct shard_batch b;

					STORY("%s, policy %u, %u threads, stage %" PRIu64, kind_name[kind], policy,
					      threads, stage_bytes);
					o.repair.on_corrupt = policy;
					o.tail = SHARD_KEEP;
					o.stage_bytes = stage_bytes;
					wanted_open(&wanted, o);
					l = loader_of(&wanted);
					for (unsigned ends = 0; ends < 2;) {
						int rc = shard_loader_next(l, &b, &fixture_err);

						ends += rc == SHARD_END;
						CHECK(rc >= 0);
						if (rc)
							continue;
						check_repaired(&wanted, &b, policy);
						CHECK_OK(shard_loader_release(l, &b, &fixture_err));
					}
					close_loader(l);
				}
	}
}

/* To fail is the default; and the loader can be closed, and goes on elsewhere, as always. */
TEST(damage_that_is_not_repaired)
{
	struct shard_loader_options o = {.batch_records = 8, .order.shuffle = SHARD_SEQUENTIAL, .thread_count = 2};
	struct shard_error err;
	struct shard_loader *l;
	struct shard_batch b;

	open_packed(BOTH_SMALL, whole);
	damage_record(&folder, 0, 1, 3);
	reopen(NULL);
	wanted_open(&wanted, o);
	l = loader_of(&wanted);
	CHECK_EQ(shard_loader_next(l, &b, &err), SHARD_E_CORRUPT);
	CHECK(strstr(err.message, "0.shard: I4") && strstr(err.message, "of group 1"));
	CHECK_OK(shard_loader_seek(l, 0, 16, &fixture_err));
	wanted_seek(&wanted, 0, 16);
	CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
	CHECK_NO_COMPLAINT(&wanted);
	close_loader(l);
}

/* ---- processes ---- */

TEST(a_child_can_close_it)
{
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
	struct shard_loader_options o = windows(3, 4);
	struct lent lent = {.count = 0};
	struct prng p = {1};
	struct shard_loader *l;
	int status;

	open_packed(LARGE_AND_SMALL, whole);
	wanted_open(&wanted, o);
	l = loader_of(&wanted);
	for (unsigned i = 0; i < 20; i++) {
		pid_t pid;

		consume(&wanted, l, &lent, &p, 5, 1);
		CHECK_NO_COMPLAINT(&wanted);
		fflush(stdout);
		pid = fork();
		if (!pid) {
			shard_loader_close(l);
			_exit(0);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	give_all(&wanted, l, &lent);
	close_loader(l);
#endif
	drop_dataset();
	remove_tree(folder.text);
}

TEST_MAIN()
