/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_again.c - a disk that delivers other bytes the second time: noticed on every path
 *
 * A record is delivered.  Then its bytes change on the disk, and the page cache loses them.  When
 * it is delivered again, SHARD_CHECK_DEVICE must notice.  There are two controls, which deliver the
 * damage: SHARD_CHECK_FIRST, and a loader that is told that it had no page fault, or that a read
 * was served by the page cache.
 *
 * LDFLAGS: -Wl,--wrap=file_seems_cached,--wrap=file_major_faults,--wrap=file_read_cached
 * LDFLAGS: -Wl,--wrap=file_changed_ns,--wrap=file_blocks_read
 * TIMEOUT: 900
 * TAKES: 15
 */
#include "libshard/dataset/dataset.h"
#include "libshard/feed/feed.h"
#include "libshard/io/io.h"
#include "libshard/loader/loader.h"
#include "shard_inspect.h"
#include "tests/store/rot.h"

#define RECORDS	       120u
#define VICTIM	       45u /* its image, or what stands in its place in a shorter group, is far from the header */
#define BATCH	       10u
#define REGION_RECORDS 700u

/* ---- what the library is told ---- */

static bool warm, whole_there, hidden, changes_told, disk_is_fast;

bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole);
uint64_t __real_file_major_faults(void);
uint64_t __wrap_file_major_faults(void);
uint64_t __real_file_blocks_read(void);
uint64_t __wrap_file_blocks_read(void);
bool __real_file_read_cached(int fd, void *out, size_t bytes, uint64_t offset);
bool __wrap_file_read_cached(int fd, void *out, size_t bytes, uint64_t offset);
uint64_t __real_file_changed_ns(int fd, const char *path, uint64_t inode);
uint64_t __wrap_file_changed_ns(int fd, const char *path, uint64_t inode);

bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole)
{
	(void)fd, (void)bytes;
	if (whole)
		*whole = whole_there;
	return warm;
}

uint64_t __wrap_file_major_faults(void)
{
	return hidden ? 0 : __real_file_major_faults();
}

uint64_t __wrap_file_blocks_read(void)
{
	return hidden ? 0 : __real_file_blocks_read();
}

bool __wrap_file_read_cached(int fd, void *out, size_t bytes, uint64_t offset)
{
	if (!hidden && !disk_is_fast)
		return __real_file_read_cached(fd, out, bytes, offset);
	return pread(fd, out, bytes, (off_t)offset) == (ssize_t)bytes;
}

uint64_t __wrap_file_changed_ns(int fd, const char *path, uint64_t inode)
{
	return changes_told ? __real_file_changed_ns(fd, path, inode) : 1;
}

/* ---- a dataset of one shard ---- */

static const struct kind {
	const char *name;
	uint32_t side, codec, group; /* the group that rots */
} kinds[] = {
	{"aligned images", 64, SHARD_RAW, 0}, {"images across pages", 77, SHARD_RAW, 0},
	{"small records", 8, SHARD_RAW, 0},   {"labels beside images", 64, SHARD_RAW, 1},
	{"chunks", 48, SHARD_LZ4, 0},
};

static struct path folder, shard;
static struct shard_schema schema;

static void make_dataset(const struct kind *k)
{
	const uint64_t sizes[] = {RECORDS};

	schema = photo_schema(k->side, k->codec);
	new_folder(&folder, "t_again");
	write_dataset(folder.text, &schema, sizes, 1);
	tmp(&shard, "t_again.%d/0.shard", (int)getpid());
}

static struct shard_dataset *open_dataset(uint32_t check)
{
	struct shard_dataset_options d = {.size = sizeof(d), .check = check};
	struct shard_dataset *ds;

	CHECK_OK(shard_dataset_open(&ds, folder.text, &d, &fixture_err));
	return ds;
}

static bool is_sound(uint32_t group, uint64_t idx, const void *record)
{
	uint64_t stride = schema.group[group].stride;
	uint8_t *want = calloc(1, stride);
	bool same;

	photo_record(&schema, group, idx, want);
	same = !memcmp(record, want, stride);
	free(want);
	return same;
}

/*
 * Where to change a bit of the victim.  In a chunk: where it decodes in spite of that, to something
 * else, so that only a hash can tell.
 */
static uint64_t place_of(const struct kind *k)
{
	struct shard_section s = section_of(shard.text, 1, k->group);
	uint64_t at = s.offset + VICTIM * schema.group[k->group].stride + 3;
	uint8_t *record = malloc(schema.group[0].stride);
	void *dst[SHARD_GROUPS_MAX] = {record};
	uint64_t idx = VICTIM;
	bool found = false;

	for (at = k->codec == SHARD_RAW ? at : s.offset; k->codec != SHARD_RAW && !found; at++) {
		struct shard_dataset *ds = open_dataset(SHARD_CHECK_NEVER);

		CHECK(at < s.offset + s.bytes);
		file_flip(shard.text, at, 1);
		found = !shard_dataset_read(ds, &idx, 1, dst, NULL) && !is_sound(0, idx, record);
		file_flip(shard.text, at, 1);
		shard_dataset_close(ds);
		at -= found;
	}
	free(record);
	return at;
}

/* ---- twice ---- */

static unsigned tries_left = 20; /* of all scenes, to make the kernel drop a page */

/* A test that is skipped leaves nothing made up behind, since others follow it. */
static void skip_rot(void)
{
	hidden = warm = whole_there = disk_is_fast = false;
	SKIP("$TMPDIR is on a file system without O_DIRECT, or that lives in memory");
}

/* Is row VICTIM % BATCH of the batch what the fixture wrote? */
static bool batch_is_sound(const struct shard_batch *b, uint32_t group)
{
	uint32_t row = VICTIM % BATCH;
	uint8_t label[512];

	CHECK_EQ(b->record[row], VICTIM);
	if (!group && schema.group[0].stride >= 4096)
		return is_sound(0, VICTIM, (const uint8_t *)b->group[0].data + row * b->group[0].stride);
	photo_record(&schema, group, VICTIM, label);
	for (uint32_t f = 0; f < schema.field_count; f++)
		if (schema.field[f].group == group &&
		    memcmp((const uint8_t *)b->field[f].data + row * b->field[f].stride, label + schema.field[f].offset,
			   schema.field[f].bytes))
			return false;
	return true;
}

/*
 * Deliver the victim in two epochs, and then again in `epoch`.  Returns the last answer.  *sound:
 * what was delivered then was right.
 */
static int deliver_twice(const struct kind *k, uint32_t path, uint32_t check, enum rot how, bool back, uint64_t epoch,
			 bool *sound)
{
	struct shard_loader_options o = {.size = sizeof(o),
					 .batch_records = BATCH,
					 .order.shuffle = SHARD_SEQUENTIAL,
					 .thread_count = 1,
					 .slot_count = 2,
					 .stage_bytes = 1, /* chunks are decoded for each batch */
					 .path = path};
	struct shard_dataset *ds;
	struct shard_loader *l;
	struct shard_error err;
	struct shard_batch b;
	uint64_t at;
	int rc;

	make_dataset(k);
	at = place_of(k);
	ds = open_dataset(check);
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	/* Two epochs: what came from the disk in the first is hashed in the second as well. */
	for (uint64_t i = 0; i < 2 * RECORDS / BATCH; i++) {
		if (i == RECORDS / BATCH)
			CHECK_EQ(shard_loader_next(l, &b, NULL), SHARD_END);
		CHECK_OK(shard_loader_next(l, &b, &fixture_err));
		CHECK(i % (RECORDS / BATCH) != VICTIM / BATCH || batch_is_sound(&b, k->group));
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	if (!rot(shard.text, at, how)) { /* on a busy machine the kernel may hold a page for long */
		shard_loader_close(l);
		shard_dataset_close(ds);
		if (tries_left < 2)
			skip_rot();
		tries_left--;
		return deliver_twice(k, path, check, how, back, epoch, sound);
	}
	if (back)
		rot_bring_back(shard.text);
	CHECK_OK(shard_loader_seek(l, epoch, VICTIM / BATCH * BATCH, &fixture_err));
	rc = shard_loader_next(l, &b, &err);
	*sound = rc || batch_is_sound(&b, k->group);
	CHECK(!rc || strstr(err.message, "0.shard: I44") || (k->codec && strstr(err.message, "0.shard: I4")));
	shard_loader_close(l);
	shard_dataset_close(ds);
	return rc;
}

/* Damage must be noticed; `dropped` and SHARD_CHECK_FIRST are the controls, which deliver it. */
static void check_twice(const struct kind *k, uint32_t path, enum rot how, uint64_t epoch, bool has_control)
{
	bool sound;

	hidden = false;
	changes_told = how == ROT_HOLE; /* a hole is read from no device, but the time of the file tells */
	CHECK_EQ(deliver_twice(k, path, SHARD_CHECK_DEVICE, how, false, epoch, &sound), SHARD_E_CORRUPT);
	changes_told = false;
	if (how == ROT_HOLE && k->codec != SHARD_RAW)
		return; /* zeros do not decode, so no control delivers them */
	CHECK_OK(deliver_twice(k, path, SHARD_CHECK_FIRST, how, false, epoch, &sound));
	CHECK(!sound);
	if (!has_control)
		return;
	hidden = true;
	CHECK_OK(deliver_twice(k, path, SHARD_CHECK_DEVICE, how, false, epoch, &sound));
	CHECK(!sound);
	hidden = false;
}

/* In the same epoch nothing is decided again, so only the read or the page fault itself can tell. */
TEST(damage_of_a_second_read_is_noticed)
{
	whole_there = true;
	for (size_t i = 0; i < COUNT(kinds); i++)
		for (uint32_t path = SHARD_PATH_AUTO; path <= SHARD_PATH_PREAD; path++)
			for (int is_warm = 0; is_warm < 2; is_warm++)
				for (enum rot how = ROT_BIT; how <= ROT_HOLE; how++) {
					bool image = !kinds[i].group && !kinds[i].codec && kinds[i].side > 8;

					if (how == ROT_HOLE && (kinds[i].group || kinds[i].side == 77 || !path))
						continue; /* as the others */
					STORY("%s, path %u, %s, %s", kinds[i].name, path, is_warm ? "warm" : "cold",
					      how == ROT_BIT ? "a bit" : "a hole");
					warm = is_warm;
					/* what is not warm is fetched again, without a fault */
					check_twice(&kinds[i], path, how, 0,
						    image && path == SHARD_PATH_PREAD
							    ? true
							    : is_warm && path <= SHARD_PATH_MAP);
				}
}

/* A read that must not wait fetches what is missing, and it is there before that read ends. */
TEST(damage_that_a_fast_disk_delivers_at_once_is_noticed)
{
	whole_there = disk_is_fast = true;
	for (size_t i = 0; i < COUNT(kinds); i++)
		for (int is_warm = 0; is_warm < 2; is_warm++) {
			STORY("%s, %s", kinds[i].name, is_warm ? "warm" : "cold");
			warm = is_warm;
			check_twice(&kinds[i], SHARD_PATH_PREAD, ROT_BIT, 0, !i);
		}
	disk_is_fast = false;
}

/*
 * The next time that a run is fetched.  The kernel has read it when it is used, so there is no
 * fault to see, but the loader knows that it has asked for it.
 */
TEST(damage_that_was_read_ahead_is_noticed)
{
	bool sound;

	whole_there = true;
	warm = false;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		hidden = true; /* a slow disk may let it wait after all */
		STORY("%s", kinds[i].name);
		CHECK_EQ(deliver_twice(&kinds[i], SHARD_PATH_MAP, SHARD_CHECK_DEVICE, ROT_BIT, false, 7, &sound),
			 SHARD_E_CORRUPT);
		CHECK_OK(deliver_twice(&kinds[i], SHARD_PATH_MAP, SHARD_CHECK_FIRST, ROT_BIT, false, 7, &sound));
		CHECK(!sound);
	}
	hidden = false;
}

/* The limit, as RELIABILITY.md has it. */
TEST(what_others_bring_back_is_noticed_by_always)
{
	bool sound;

	whole_there = warm = true;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		STORY("%s", kinds[i].name);
		hidden = true; /* a page of the program itself may come from the disk at that moment */
		CHECK_OK(deliver_twice(&kinds[i], SHARD_PATH_MAP, SHARD_CHECK_DEVICE, ROT_BIT, true, 0, &sound));
		CHECK(!sound);
		hidden = false;
		for (uint32_t path = SHARD_PATH_MAP; path <= SHARD_PATH_PREAD; path++)
			CHECK_EQ(deliver_twice(&kinds[i], path, SHARD_CHECK_ALWAYS, ROT_BIT, true, 0, &sound),
				 SHARD_E_CORRUPT);
	}
}

/* A write through the page cache changes the time of the file, which is looked at in each epoch. */
TEST(a_file_that_was_written_is_checked_again)
{
	bool sound;

	whole_there = true;
	warm = false;
	hidden = true; /* not every file system tells that it read from memory */
	for (int told = 0; told < 2; told++) {
		changes_told = told;
		CHECK_EQ(
			deliver_twice(&kinds[0], SHARD_PATH_PREAD, SHARD_CHECK_DEVICE, ROT_IN_MEMORY, false, 7, &sound),
			told ? SHARD_E_CORRUPT : SHARD_OK);
		CHECK_EQ(sound, told);
	}
	hidden = false;
	changes_told = false;
}

/* As a GPU asks for, which has found damage: rows are hashed, though nothing tells that they changed. */
TEST(rows_that_are_brought_again_are_hashed)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = BATCH, .order.shuffle = SHARD_SEQUENTIAL};
	const struct slot *like, *from;
	struct shard_dataset *ds;
	struct shard_loader *l;
	struct shard_error err;
	struct shard_batch b;
	uint64_t at, repaired;

	hidden = true;
	for (size_t i = 0; i < COUNT(kinds); i++)
		for (o.path = SHARD_PATH_MAP; !kinds[i].codec && o.path <= SHARD_PATH_PREAD; o.path++) {
			STORY("%s, path %u", kinds[i].name, o.path);
			make_dataset(&kinds[i]);
			at = place_of(&kinds[i]);
			ds = open_dataset(SHARD_CHECK_DEVICE);
			CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
			for (unsigned n = 0; n < VICTIM / BATCH; n++) {
				CHECK_OK(shard_loader_next(l, &b, &fixture_err));
				CHECK_OK(shard_loader_release(l, &b, &fixture_err));
			}
			CHECK_OK(shard_loader_next(l, &b, &fixture_err));
			like = &l->feed->ring.slot[b.slot];
			for (int damaged = 1; damaged >= 0; damaged--) {
				file_flip(shard.text, at, 1);
				CHECK_EQ(feed_bring_again(l->feed, like, 0, BATCH, &from, &repaired, &err),
					 damaged ? SHARD_E_CORRUPT : SHARD_OK);
				CHECK(!damaged || strstr(err.message, "0.shard: I44"));
				CHECK_EQ(repaired, 0);
			}
			CHECK_MEM(from->record, b.record, BATCH * sizeof(*b.record));
			shard_loader_close(l);
			shard_dataset_close(ds);
		}
	hidden = false;
}

/* ---- what is forgotten ---- */

static uint64_t seen_count(const struct shard_reader *r, uint32_t group)
{
	_Atomic uint64_t *seen = atomic_load(&r->group[group].seen);
	uint64_t count = 0;

	for (uint64_t i = 0; seen && i < (reader_unit_count(r, group) + 63) / 64; i++)
		count += (uint64_t)__builtin_popcountll(atomic_load(&seen[i]));
	return count;
}

static void read_records(struct shard_dataset *ds, uint64_t count)
{
	uint8_t *record = malloc(schema.group[0].stride);
	void *dst[SHARD_GROUPS_MAX] = {record};

	for (uint64_t i = 0; i < count; i++)
		CHECK_OK(shard_dataset_read(ds, &i, 1, dst, &fixture_err));
	free(record);
}

TEST(a_shard_of_which_a_part_is_missing_is_forgotten)
{
	static const uint32_t checks[] = {SHARD_CHECK_DEVICE, SHARD_CHECK_FIRST};
	struct shard_reader *r;
	struct paths p;

	warm = true;
	make_dataset(&kinds[0]);
	for (size_t i = 0; i < COUNT(checks); i++) {
		struct shard_dataset *ds = open_dataset(checks[i]);
		struct layout layout;
		struct layouts layouts = {.batch = &layout};

		STORY("check %u", checks[i]);
		CHECK(layout_plan(&layout, shard_dataset_schema(ds), UINT32_MAX, 0, 0, 1, NULL));
		CHECK(paths_open(&p, ds, &layouts, SHARD_PATH_MAP));
		CHECK_OK(shard_dataset_reader(ds, 0, &r, &fixture_err));
		read_records(ds, RECORDS);
		whole_there = true;
		paths_decide(&p, 0, r, 0);
		CHECK_EQ(seen_count(r, 0), RECORDS);
		whole_there = false;
		paths_decide(&p, 0, r, 1);
		CHECK_EQ(seen_count(r, 0), checks[i] == SHARD_CHECK_FIRST ? RECORDS : 0);
		paths_close(&p, false);
		shard_dataset_close(ds);
	}
}

/* One shard of several regions. */
static struct shard_reader *open_regions(struct shard_dataset **ds)
{
	const uint64_t sizes[] = {REGION_RECORDS};
	struct shard_reader *r;
	int fd;

	make_dataset(&kinds[1]);
	remove_tree(folder.text);
	new_folder(&folder, "t_again");
	write_dataset(folder.text, &schema, sizes, 1);
	fd = open(shard.text, O_RDONLY | O_CLOEXEC);
	CHECK_EQ(fsync(fd), 0);
	file_drop_cache(fd); /* or small pages of the file might stay */
	close(fd);
	*ds = open_dataset(SHARD_CHECK_DEVICE);
	CHECK_OK(shard_dataset_reader(*ds, 0, &r, &fixture_err));
	CHECK(schema.group[0].stride * REGION_RECORDS > 4 * READER_REGION_BYTES);
	return r;
}

/* Do these records have bytes in one piece of so many bytes of the file? */
static bool share(uint64_t a, uint64_t a_count, uint64_t b, uint64_t piece_bytes)
{
	uint64_t from = section_of(shard.text, 1, 0).offset, stride = schema.group[0].stride;
	uint64_t a_first = (from + a * stride) / piece_bytes,
		 a_last = (from + (a + a_count) * stride - 1) / piece_bytes;

	return (from + b * stride) / piece_bytes <= a_last && (from + (b + 1) * stride - 1) / piece_bytes >= a_first;
}

TEST(units_that_share_pages_or_regions_are_forgotten_together)
{
	struct shard_dataset *ds;
	struct shard_reader *r = open_regions(&ds);

	for (int has_regions = 0; has_regions < 2; has_regions++) {
		if (has_regions)
			reader_ask_for_regions(r);
		for (uint64_t first = 0; first < REGION_RECORDS; first += 97)
			for (uint64_t count = 1; first + count <= REGION_RECORDS; count += 131) {
				STORY("regions %d, records %" PRIu64 " and %" PRIu64 " more", has_regions, first,
				      count - 1);
				read_records(ds, REGION_RECORDS);
				CHECK_EQ(seen_count(r, 0), REGION_RECORDS);
				reader_forget(r, 0, first, count);
				for (uint64_t i = 0; i < REGION_RECORDS; i++)
					CHECK_EQ(atomic_load(&r->group[0].seen[i / 64]) >> (i & 63) & 1,
						 !share(first, count, i, has_regions ? READER_REGION_BYTES : 4096));
			}
	}
	shard_dataset_close(ds);
	remove_tree(folder.text);
}

/*
 * The kernel reads a whole region for one record.  Another one, which was checked before, comes
 * back with it, and is another one now.  The control thinks in pages.
 */
TEST(a_neighbour_that_comes_back_with_a_region_is_checked_again)
{
	for (int control = 0; control < 2; control++) {
		struct shard_dataset *ds;
		struct shard_reader *r = open_regions(&ds);
		uint64_t victim = 0, other, stride = schema.group[0].stride, faults;
		uint64_t from = section_of(shard.text, 1, 0).offset;
		uint8_t *record = malloc(stride);
		int rc;

		STORY("control %d", control);
		while ((from + victim * stride) / READER_REGION_BYTES < 2)
			victim++;
		other = victim + 50;
		CHECK(share(victim, 1, other, READER_REGION_BYTES) && !share(victim, 1, other, 4096));
		reader_ask_for_regions(r);
		file_await(r->map, (size_t)r->file_bytes); /* in regions */
		read_records(ds, REGION_RECORDS);
		if (!rot(shard.text, from + victim * stride + 9000, ROT_BIT))
			skip_rot();
		if (control)
			atomic_store(&r->has_regions, false);
		CHECK_OK(shard_reader_read(r, 0, other, 1, record, &fixture_err));
		faults = __real_file_major_faults();
		rc = shard_reader_read(r, 0, victim, 1, record, NULL);
		/* Where the kernel reads page by page, the record itself has to be waited for. */
		CHECK_EQ(rc, control && __real_file_major_faults() == faults ? SHARD_OK : SHARD_E_CORRUPT);
		shard_dataset_close(ds);
		free(record);
		remove_tree(folder.text);
	}
}

/* ---- without a loader ---- */

TEST(records_read_one_by_one)
{
	static const struct {
		uint32_t check;
		bool hidden;
		int want;
	} rows[] = {{SHARD_CHECK_DEVICE, false, SHARD_E_CORRUPT},
		    {SHARD_CHECK_DEVICE, true, SHARD_OK},
		    {SHARD_CHECK_FIRST, false, SHARD_OK},
		    {SHARD_CHECK_ALWAYS, false, SHARD_E_CORRUPT}};

	for (size_t k = 0; k < COUNT(kinds) - 1; k++) /* chunks are hashed at each use */
		for (size_t i = 0; i < 2 * COUNT(rows); i++) {
			uint64_t idx = VICTIM, stride;
			struct shard_dataset *ds;
			struct shard_reader *r;
			uint8_t *record;
			void *dst[SHARD_GROUPS_MAX] = {NULL};
			bool by_reader = i >= COUNT(rows);

			STORY("%s, check %u, hidden %d, by the %s", kinds[k].name, rows[i % COUNT(rows)].check,
			      rows[i % COUNT(rows)].hidden, by_reader ? "reader" : "dataset");
			make_dataset(&kinds[k]);
			stride = schema.group[kinds[k].group].stride;
			dst[kinds[k].group] = record = malloc(stride);
			ds = open_dataset(rows[i % COUNT(rows)].check);
			CHECK_OK(shard_dataset_read(ds, &idx, 1, dst, &fixture_err));
			CHECK_OK(shard_dataset_reader(ds, 0, &r, &fixture_err));
			hidden = rows[i % COUNT(rows)].hidden;
			reader_had_faults(); /* what was before does not count */
			if (!rot(shard.text, place_of(&kinds[k]), ROT_BIT))
				skip_rot();
			CHECK_EQ(by_reader ? shard_reader_read(r, kinds[k].group, idx, 1, record, NULL)
					   : shard_dataset_read(ds, &idx, 1, dst, NULL),
				 rows[i % COUNT(rows)].want);
			hidden = false;
			shard_dataset_close(ds);
			free(record);
		}
	remove_tree(folder.text);
}

TEST_MAIN()
