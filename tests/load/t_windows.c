/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_windows.c - a loader of windows delivers each record with its neighbours, on every path, and
 * refuses what cannot be
 *
 * The slow twin walks from the record towards the window's rows, one record at a time, and stays
 * where its episode ends.
 */
#include "libshard/base/mem.h"
#include "libshard/dataset/dataset.h"
#include "libshard/io/io.h"
#include "libshard/order/order.h"
#include "tests/load/batches.h"
#include "tests/load/kinds.h"

static const uint64_t sizes[] = {40, 1, 0, 62};
static uint64_t begins[] = {0, 1, 2, 30, 44, 90, 103}; /* some cross the ends of shards */
static struct shard_episodes episodes;
static const int32_t offsets[] = {-9, -3, -2, -1, 0, 1, 3}; /* some are neighbours */

static void open_windows(uint32_t codec)
{
	open_photos(codec == SHARD_RAW ? 40 : 8, codec, sizes, COUNT(sizes));
	dataset_id(ds, episodes.dataset_id);
	episodes.begin = begins;
	episodes.count = COUNT(begins) - 1;
	if (!episodes.near)
		CHECK(episodes_index(&episodes));
}

static struct shard_loader_options windows_of_kind(size_t kind)
{
	struct shard_loader_options o = of_kind(kind);

	o.window =
		(struct shard_loader_window){.episodes = &episodes, .offset = offsets, .offset_count = COUNT(offsets)};
	o.tail = SHARD_KEEP;
	return o;
}

static bool is_first(uint64_t record)
{
	for (size_t i = 0; i < COUNT(begins); i++)
		if (begins[i] == record)
			return true;
	return false;
}

/* The record of a row, and whether it is a repeat. */
static uint64_t walk(uint64_t record, int32_t offset, bool *repeats)
{
	for (*repeats = false; offset < 0 && !*repeats; offset++) {
		*repeats = is_first(record);
		record -= !*repeats;
	}
	for (; offset > 0 && !*repeats; offset--) {
		*repeats = is_first(record + 1);
		record += !*repeats;
	}
	return record;
}

/* Rows that are not what the twin says. */
static uint32_t check_batch(const struct shard_batch *b, const uint64_t *anchor)
{
	const struct shard_schema *s = shard_dataset_schema(ds);
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < b->record_count; i++) {
		bool repeats;
		uint64_t want = walk(anchor[i / COUNT(offsets)], offsets[i % COUNT(offsets)], &repeats);
		bool same = b->record[i] == want && b->row_flags[i] == (repeats ? SHARD_ROW_EDGE : 0);

		for (uint32_t f = 0; f < s->field_count; f++) {
			const struct shard_field *field = &s->field[f];
			uint8_t *record = calloc(1, (size_t)s->group[field->group].stride);

			photo_record(s, field->group, want, record);
			same &= !memcmp((const uint8_t *)b->field[f].data + i * b->field[f].stride,
					record + field->offset, (size_t)field->bytes);
			free(record);
		}
		wrong += !same;
	}
	return wrong;
}

TEST(rows_are_the_neighbours_within_the_episode)
{
	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
		open_windows(codec);
		for (size_t kind = 0; kind < KINDS; kind++)
			for (uint32_t path = SHARD_PATH_AUTO; path <= SHARD_PATH_PREAD; path++) {
				struct shard_loader_options o = windows_of_kind(kind);
				uint64_t anchor[RECORDS_CAP], at = 0;
				struct shard_loader *l;
				struct shard_batch b;

				STORY("codec %u, order %u, path %u", codec, (unsigned)kind, path);
				o.path = path;
				CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
				CHECK_OK(shard_loader_order(l, 0, 0, 103, NULL, anchor, &fixture_err));
				while (!shard_loader_next(l, &b, &fixture_err)) {
					CHECK_EQ(b.record_count % COUNT(offsets), 0);
					CHECK_EQ(check_batch(&b, anchor + at), 0);
					/* the control: another record's window is not this one's */
					CHECK(check_batch(&b, anchor + (at ? 0 : 7)) > 0);
					at += b.record_count / COUNT(offsets);
					CHECK_OK(shard_loader_release(l, &b, &fixture_err));
				}
				CHECK_EQ(at, 103);
				shard_loader_close(l);
			}
	}
}

/* Many short episodes in one piece, and episodes of many pieces. */
TEST(the_episode_of_each_record_is_found)
{
	for (uint64_t draw = 0; draw < 2000; draw++) {
		uint64_t begin[42] = {0}, most = draw % 3 ? 3 : 300;
		struct shard_episodes e = {.begin = begin, .count = 1 + draw % 40};

		STORY("draw %" PRIu64, draw);
		for (uint64_t i = 0; i < e.count; i++)
			begin[i + 1] = begin[i] + 1 + random_below(random_draw(draw, i), i % 7 ? most : 1000);
		CHECK(episodes_index(&e));
		for (uint64_t i = 0, record = 0; i < e.count; i++)
			for (; record < begin[i + 1]; record++)
				CHECK_EQ(episodes_find(&e, record), i);
		mem_free(e.near);
	}
}

TEST(whole_windows_can_be_selected)
{
	struct shard_selection *s;
	uint64_t at = 0;

	open_windows(SHARD_RAW);
	CHECK_OK(shard_select_inside(&s, ds, NULL, &episodes, -9, 3, &fixture_err));
	for (uint64_t i = 0; i < 103; i++) {
		bool before, behind;

		(void)walk(i, -9, &before);
		(void)walk(i, 3, &behind);
		if (!before && !behind)
			CHECK_EQ(selection_at(s, at++), i);
	}
	CHECK_EQ(at, s->count);
	shard_selection_close(s);
	CHECK_EQ(shard_select_inside(&s, ds, NULL, &episodes, 2, 1, &fixture_err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_select_inside(&s, ds, NULL, &episodes, -50, 0, &fixture_err), SHARD_E_ARGUMENT);
}

TEST(what_cannot_be_is_refused)
{
	struct shard_loader_options other = windows_of_kind(0);
	struct shard_episodes *e;
	struct shard_loader *l;
	static const int32_t twice[] = {1, 1};

	open_windows(SHARD_RAW);
	CHECK_EQ(shard_episodes_open(&e, ds, "no", &fixture_err), SHARD_E_ARGUMENT);
	CHECK(strstr(fixture_err.message, "'no' is not in the dataset"));
	CHECK_EQ(shard_episodes_open(&e, ds, "weight", &fixture_err), SHARD_E_ARGUMENT);
	CHECK(strstr(fixture_err.message, "not an integer scalar"));
	CHECK_EQ(shard_episodes_open(&e, ds, "label", &fixture_err), SHARD_E_ARGUMENT);
	CHECK(strstr(fixture_err.message, "were shuffled"));
	ds->m.order = SHARD_ORDER_SOURCE;
	CHECK_EQ(shard_episodes_open(&e, ds, "label", &fixture_err), SHARD_E_ARGUMENT);
	CHECK(strstr(fixture_err.message, "record 10 has the value of record 0"));
	for (int i = 0; i < 7; i++) {
		struct shard_loader_options o = windows_of_kind(0);
		struct shard_loader_window *w = &o.window;

		STORY("mistake %d", i);
		if (i == 0)
			w->reserved = 1;
		if (i == 1)
			w->episodes = NULL;
		if (i == 2)
			w->offset_count = 0;
		if (i == 3)
			*w = (struct shard_loader_window){.episodes = &episodes, .offset = twice, .offset_count = 2};
		if (i == 4) {
			o.batch_records = UINT32_MAX / 4;
			o.tail = SHARD_PAD;
		}
		if (i == 5)
			o.repair.on_corrupt = SHARD_CORRUPT_SUBSTITUTE;
		if (i == 6)
			w->offset_count = 65537;
		CHECK_EQ(shard_loader_open(&l, ds, &o, &fixture_err), SHARD_E_ARGUMENT);
	}
	for (int i = 0; i < 2; i++) {
		struct shard_loader_options o = windows_of_kind(0);

		o.resume_appended = !i;
		o.gpu.pool_bytes = i ? 1 << 20 : 0;
		CHECK_EQ(shard_loader_open(&l, ds, &o, &fixture_err), SHARD_E_UNSUPPORTED);
	}
	episodes.dataset_id[0] ^= 1;
	CHECK_EQ(shard_loader_open(&l, ds, &other, &fixture_err), SHARD_E_MISMATCH);
}

/* 2^32 rows of 4,800 bytes, in the memory of each of two slots or more. */
TEST(batches_that_exceed_the_memory)
{
	struct shard_loader_options o = windows_of_kind(0);
	struct shard_loader *l;
	struct shard_batch b;
	char want[64];

	open_windows(SHARD_RAW);
	o.batch_records = UINT32_MAX / COUNT(offsets);
	o.tail = SHARD_PAD;
	CHECK_EQ(shard_loader_open(&l, ds, &o, &fixture_err), SHARD_E_MEMORY);
	snprintf(want, sizeof(want), "this process may have %" PRIu64 " bytes", memory_limit_bytes());
	CHECK(strstr(fixture_err.message, want));
	CHECK(strstr(fixture_err.message, "slots for batches of 4294967292 rows of "));
	CHECK(strstr(fixture_err.message, "or shorter windows"));
	o.window.offset_count = 0;
	o.window.offset = NULL;
	o.window.episodes = NULL;
	o.batch_records = UINT32_MAX;
	CHECK_EQ(shard_loader_open(&l, ds, &o, &fixture_err), SHARD_E_MEMORY);
	CHECK(strstr(fixture_err.message, want) && !strstr(fixture_err.message, "windows"));
	/* The control: with SHARD_KEEP the only batch has all records, and needs no more memory than these. */
	o = windows_of_kind(0);
	o.batch_records = UINT32_MAX;
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	CHECK_EQ(b.record_count, 103 * COUNT(offsets));
	CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	shard_loader_close(l);
}

TEST_MAIN()
