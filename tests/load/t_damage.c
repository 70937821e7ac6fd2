/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_damage.c - damaged records: an error, the next good record, or zeros; the same on every path,
 * thread and rank
 *
 * What is good is asked of shard_dataset_read(), which knows no policy; what a record holds, of the
 * fixture.
 *
 * LDFLAGS: -Wl,--wrap=repair_rows
 */
#include "libshard/feed/feed.h"
#include "tests/store/fixture.h"

static bool repairs = true;

int __real_repair_rows(struct row_source *source, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		       struct shard_error *err);
int __wrap_repair_rows(struct row_source *source, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		       struct shard_error *err);

int __wrap_repair_rows(struct row_source *source, struct scratch *scratch, struct slot *s, struct fill_counts *counts,
		       struct shard_error *err)
{
	return repairs ? __real_repair_rows(source, scratch, s, counts, err) : SHARD_OK;
}

#define RECORDS 130u
static const uint64_t sizes[] = {40, 50, 40};
static struct path folder;
static struct shard_schema schema;
static bool good[RECORDS];

static void make_dataset(uint32_t codec)
{
	schema = photo_schema(48, codec);
	new_folder(&folder, "t_damage");
	write_dataset(folder.text, &schema, sizes, COUNT(sizes));
}

static struct shard_dataset *open_dataset(void)
{
	struct shard_dataset *ds;

	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	return ds;
}

/* Returns how many are damaged. */
static unsigned find_good(void)
{
	struct shard_dataset *ds = open_dataset();
	uint8_t *image = malloc(schema.group[0].stride), *meta = malloc(schema.group[1].stride);
	void *dst[SHARD_GROUPS_MAX] = {image, meta};
	unsigned bad = 0;

	for (uint64_t i = 0; i < RECORDS; i++) {
		good[i] = !shard_dataset_read(ds, &i, 1, dst, NULL);
		bad += !good[i];
	}
	shard_dataset_close(ds);
	free(image);
	free(meta);
	return bad;
}

static bool all_zero(const uint8_t *p, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		if (p[i])
			return false;
	return true;
}

/* Row i of a batch, which is due record `due`. */
static void check_row(const struct shard_batch *b, uint32_t i, uint64_t due, uint32_t policy)
{
	uint64_t record = due, stride = schema.group[0].stride;
	uint8_t meta[512];

	CHECK_EQ(b->row_flags[i], good[due]			 ? 0
				  : policy == SHARD_CORRUPT_MASK ? SHARD_ROW_MASKED
								 : SHARD_ROW_SUBSTITUTED);
	while (policy == SHARD_CORRUPT_SUBSTITUTE && !good[record])
		record = (record + 1) % RECORDS;
	CHECK_EQ(b->record[i], record);
	if (!good[record]) {
		CHECK(all_zero((const uint8_t *)b->group[0].data + i * stride, stride));
		for (uint32_t f = PHOTO_LABEL; f <= PHOTO_WEIGHT; f++)
			CHECK(all_zero((const uint8_t *)b->field[f].data + i * b->field[f].stride,
				       schema.field[f].bytes));
		return;
	}
	check_photo(&schema, 0, record, (const uint8_t *)b->group[0].data + i * stride);
	photo_record(&schema, 1, record, meta);
	for (uint32_t f = PHOTO_LABEL; f <= PHOTO_WEIGHT; f++)
		CHECK_MEM((const uint8_t *)b->field[f].data + i * b->field[f].stride, meta + schema.field[f].offset,
			  schema.field[f].bytes);
}

/* Two epochs of one rank; returns the rows that were flagged. */
static uint64_t run(uint32_t policy, uint32_t path, uint32_t threads, uint32_t rank, uint32_t world)
{
	struct shard_loader_options o = {.size = sizeof(o),
					 .batch_records = 12,
					 .order.seed = 9,
					 .rank = rank,
					 .world = world,
					 .path = path,
					 .thread_count = threads,
					 .repair.on_corrupt = policy,
					 .order.shuffle = SHARD_SHUFFLE_GLOBAL};
	struct shard_dataset *ds = open_dataset();
	uint64_t due[RECORDS], flagged = 0, steps;
	struct shard_loader_stats stats;
	struct shard_loader *l;
	struct shard_error last;
	struct shard_batch b;

	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	steps = shard_loader_step_count(l);
	for (uint64_t epoch = 0; epoch < 2; epoch++) {
		CHECK_OK(shard_loader_order(l, epoch, 0, steps * 12, NULL, due, &fixture_err));
		for (uint64_t step = 0; step < steps; step++) {
			CHECK_OK(shard_loader_next(l, &b, &fixture_err));
			for (uint32_t i = 0; i < b.record_count; i++) {
				check_row(&b, i, due[step * 12 + i], policy);
				flagged += b.row_flags[i] != 0;
			}
			CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		}
		CHECK_EQ(shard_loader_next(l, &b, NULL), SHARD_END);
	}
	shard_loader_stats(l, &stats);
	CHECK(policy == SHARD_CORRUPT_MASK ? stats.masked_count >= flagged && !stats.substituted_count
					   : stats.substituted_count >= flagged && !stats.masked_count);
	CHECK_EQ(stats.mapped_bytes + stats.direct_bytes + stats.pread_bytes, stats.filled_bytes);
	CHECK_EQ(shard_loader_last_damage(l, &last), flagged ? SHARD_OK : SHARD_END);
	CHECK(!flagged || (last.status == SHARD_E_CORRUPT && strstr(last.message, ".shard: I4")));
	shard_loader_close(l);
	shard_dataset_close(ds);
	return flagged;
}

static void run_all(uint64_t bad_most)
{
	for (uint32_t policy = SHARD_CORRUPT_SUBSTITUTE; policy <= SHARD_CORRUPT_MASK; policy++)
		for (uint32_t path = SHARD_PATH_AUTO; path <= SHARD_PATH_PREAD; path++)
			for (uint32_t threads = 1; threads <= 3; threads += 2) {
				uint64_t flagged = 0;

				STORY("policy %u, path %u, threads %u", policy, path, threads);
				CHECK(run(policy, path, threads, 0, 1) <= 2 * bad_most);
				for (uint32_t rank = 0; rank < 2; rank++)
					flagged += run(policy, path, threads, rank, 2);
				CHECK(bad_most ? flagged > 0 && flagged <= 2 * bad_most : !flagged);
			}
}

TEST(an_undamaged_dataset_is_never_touched)
{
	make_dataset(SHARD_RAW);
	CHECK_EQ(find_good(), 0);
	run_all(0);
}

TEST(images_labels_and_neighbours)
{
	make_dataset(SHARD_RAW);
	damage_record(&folder, 0, 0, 3 * schema.group[0].stride + 70);
	damage_record(&folder, 0, 0, 4 * schema.group[0].stride); /* the next one too */
	/* the last of all: its substitute is the first */
	damage_record(&folder, 2, 0, 39 * schema.group[0].stride + 1);
	CHECK_EQ(find_good(), 3);
	run_all(3);
	damage_record(&folder, 1, 1, 5); /* a unit of labels: many records, whose images are fine */
	CHECK(find_good() > 10);
	run_all(RECORDS);
}

TEST(compressed_chunks)
{
	make_dataset(SHARD_LZ4);
	damage_record(&folder, 1, 0, 100);
	CHECK(find_good() > 0);
	run_all(RECORDS);
}

TEST(to_fail_is_the_default)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 10, .order.shuffle = SHARD_SEQUENTIAL};
	struct shard_error err;
	struct shard_dataset *ds;
	struct shard_loader *l;
	struct shard_batch b;

	make_dataset(SHARD_RAW);
	damage_record(&folder, 0, 0, 13 * schema.group[0].stride);
	ds = open_dataset();
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	CHECK_EQ(shard_loader_next(l, &b, &err), SHARD_E_CORRUPT);
	CHECK(strstr(err.message, "0.shard: I44: unit 13 of group 0"));
	CHECK_EQ(shard_loader_last_damage(l, &err), SHARD_END);
	shard_loader_close(l);
	o.repair.on_corrupt = 3;
	CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_ARGUMENT);
	shard_dataset_close(ds);
}

/* The control: a loader that delivers damaged rows as they are is one that check_row() refuses. */
TEST(a_loader_that_repairs_nothing_would_be_noticed)
{
	struct shard_loader_options o = {.size = sizeof(o),
					 .batch_records = 20,
					 .order.shuffle = SHARD_SEQUENTIAL,
					 .repair.on_corrupt = SHARD_CORRUPT_MASK};
	struct shard_dataset *ds;
	struct shard_loader *l;
	struct shard_batch b;

	make_dataset(SHARD_RAW);
	damage_record(&folder, 0, 0, 13 * schema.group[0].stride);
	ds = open_dataset();
	repairs = false;
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	CHECK(b.row_flags[13] != SHARD_ROW_MASKED);
	CHECK(!all_zero((const uint8_t *)b.group[0].data + 13 * b.group[0].stride, b.group[0].stride));
	shard_loader_close(l);
	shard_dataset_close(ds);
	repairs = true;
}

/* Nothing is left to take: an error, and no endless search. */
TEST(no_substitute)
{
	struct shard_loader_options o = {
		.size = sizeof(o), .batch_records = 10, .repair.on_corrupt = SHARD_CORRUPT_SUBSTITUTE};
	struct shard_error err;
	struct shard_dataset *ds;
	struct shard_loader *l;
	struct shard_batch b;

	make_dataset(SHARD_RAW);
	for (unsigned shard = 0; shard < COUNT(sizes); shard++)
		for (uint64_t i = 0; i < sizes[shard]; i++)
			damage_record(&folder, shard, 0, i * schema.group[0].stride + i);
	CHECK_EQ(find_good(), RECORDS);
	ds = open_dataset();
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	CHECK_EQ(shard_loader_next(l, &b, &err), SHARD_E_CORRUPT);
	CHECK(strstr(err.message, "no substitute was found"));
	shard_loader_close(l);
	shard_dataset_close(ds);
}

/* Each second record of the first two shards: 45 of 130, in batches of 10 with 5 each. */
static void damage_every_second(void)
{
	make_dataset(SHARD_RAW);
	for (unsigned shard = 0; shard < 2; shard++)
		for (uint64_t i = 0; i < sizes[shard]; i += 2)
			damage_record(&folder, shard, 0, i * schema.group[0].stride + i);
	CHECK_EQ(find_good(), 45);
}

/* Takes batches until it fails, or two epochs are over.  Returns how many came. */
static unsigned take_all(struct shard_loader *l, struct shard_error *err)
{
	struct shard_batch b;
	unsigned count = 0, ends = 0;
	int rc;

	err->message[0] = 0;
	while (ends < 2) {
		rc = shard_loader_next(l, &b, err);
		if (rc < 0) {
			CHECK_EQ(rc, SHARD_E_CORRUPT);
			break;
		}
		ends += rc == SHARD_END;
		count += !rc;
		if (!rc)
			CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	return count;
}

TEST(corrupt_most_bounds_rows_of_both_policies)
{
	static const struct {
		const char *story;
		uint64_t most;
		unsigned batches; /* that come before it fails; 26 in two epochs */
		const char *says;
	} rows[] = {
		{"the first damaged batch is too much", 4, 0,
		 ": epoch 0: 0 rows were substituted or masked, and 5 more would be"},
		{"exactly what one batch has", 5, 1, ": 5 rows were"},
		{"in the middle of the first epoch", 23, 4,
		 ": epoch 0: 20 rows were substituted or masked, and 5 "
		 "more would be; repair.corrupt_most is 23: restore the damaged shards"},
		{"one less than an epoch has", 44, 8, ": 40 rows were"},
		{"exactly an epoch", 45, 26, ""},
		{"the default", 0, 26, ""},
		{"no limit", UINT64_MAX, 26, ""},
	};
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 10, .order.shuffle = SHARD_SEQUENTIAL};
	struct shard_error err, again;
	struct shard_loader *l;

	damage_every_second();
	for (o.repair.on_corrupt = SHARD_CORRUPT_SUBSTITUTE; o.repair.on_corrupt <= SHARD_CORRUPT_MASK;
	     o.repair.on_corrupt++)
		for (o.thread_count = 1; o.thread_count <= 3; o.thread_count += 2)
			for (size_t i = 0; i < COUNT(rows); i++) {
				struct shard_dataset *ds = open_dataset();

				STORY("policy %u, %u threads: %s", o.repair.on_corrupt, o.thread_count, rows[i].story);
				o.repair.corrupt_most = rows[i].most;
				CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
				CHECK_EQ(take_all(l, &err), rows[i].batches);
				CHECK(strstr(err.message, rows[i].says));
				if (rows[i].says[0]) { /* it repeats, also at another place that is damaged */
					CHECK_EQ(take_all(l, &again), 0);
					CHECK_STR(again.message, err.message);
					CHECK_OK(shard_loader_seek(l, 5, 90, &fixture_err));
					/* what is sound comes, and the next epoch begins at 0 */
					CHECK_EQ(take_all(l, &again), 4 + rows[i].batches);
					CHECK(strstr(again.message, ": epoch 6: "));
				}
				shard_loader_close(l);
				shard_dataset_close(ds);
			}
}

/* Ten thousand rows, and still the same 45 records. */
TEST(what_stays_damaged_does_not_end_a_long_job)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 10, .order.shuffle = SHARD_SEQUENTIAL};
	struct shard_loader_stats stats;
	struct shard_dataset *ds;
	struct shard_loader *l;
	struct shard_error err;

	damage_every_second();
	for (o.repair.on_corrupt = SHARD_CORRUPT_SUBSTITUTE; o.repair.on_corrupt <= SHARD_CORRUPT_MASK;
	     o.repair.on_corrupt++) {
		ds = open_dataset();
		CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
		for (unsigned epochs = 0; epochs < 224; epochs += 2)
			CHECK_EQ(take_all(l, &err), 26);
		shard_loader_stats(l, &stats);
		CHECK(stats.substituted_count + stats.masked_count >= 224 * 45);
		shard_loader_close(l);
		shard_dataset_close(ds);
	}
}

/* More rows than the default allows in an epoch: 1,020 come, and no further batch of 5. */
TEST(the_default_is_1024_rows)
{
	static const uint64_t many[] = {2200};
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 10, .order.shuffle = SHARD_SEQUENTIAL};
	struct shard_dataset *ds;
	struct shard_loader *l;
	struct shard_error err;

	schema = photo_schema(40, SHARD_RAW); /* a record is a unit */
	new_folder(&folder, "t_damage");
	write_dataset(folder.text, &schema, many, COUNT(many));
	for (uint64_t i = 0; i < many[0]; i += 2)
		damage_record(&folder, 0, 0, i * schema.group[0].stride);
	for (o.repair.on_corrupt = SHARD_CORRUPT_SUBSTITUTE; o.repair.on_corrupt <= SHARD_CORRUPT_MASK;
	     o.repair.on_corrupt++) {
		ds = open_dataset();
		CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
		CHECK_EQ(take_all(l, &err), 204);
		CHECK(strstr(err.message, ": epoch 0: 1020 rows were substituted or masked, and 5 more would be"));
		CHECK(strstr(err.message, "; repair.corrupt_most is 1024: "));
		shard_loader_close(l);
		shard_dataset_close(ds);
	}
	remove_tree(folder.text);
}

TEST_MAIN()
