/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_reader.c - bounds, when a unit is checked, threads that share a reader, and files that shrink
 */
#include <signal.h>
#include <sys/wait.h>

#include "libshard/dataset/dataset.h"
#include "shard_inspect.h"
#include "tests/store/fixture.h"

#define RECORDS 60u

static struct path shard;
static struct shard_schema schema;

/* Sixty photographs; group 1 in units of 8. */
static void make_shard(uint32_t codec)
{
	schema = photo_schema(20, codec); /* 1,200 bytes, a stride of 1,216: units of 4, or chunks of 64 */
	schema.group[0].unit_records = 4;
	schema.group[0].chunk_records = codec == SHARD_RAW ? 0 : 4;
	schema.group[1].unit_records = 8;
	tmp(&shard, "t_reader.%d.shard", (int)getpid());
	unlink(shard.text);
	write_photos(shard.text, &schema, 0, RECORDS, NULL);
}

static struct shard_reader *open_with(uint32_t check, uint32_t guard)
{
	struct shard_reader_options o = {.size = sizeof(o), .check = check, .guard = guard};
	struct shard_reader *r;

	CHECK_OK(shard_reader_open(&r, shard.text, &o, &fixture_err));
	return r;
}

/* ---- hashes ---- */

TEST(each_bit_of_a_hash_counts)
{
	struct section s = {.hash = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
	uint8_t hash[sizeof(s.hash)];

	memcpy(hash, s.hash, sizeof(hash));
	CHECK_OK(reader_check_section_hash(&s, hash, &fixture_err));
	for (unsigned bit = 0; bit < 8 * sizeof(hash); bit++) {
		STORY("bit %u", bit);
		hash[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CHECK_EQ(reader_check_section_hash(&s, hash, NULL), SHARD_E_CORRUPT);
		hash[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* ---- bounds ---- */

TEST(ranges_stay_inside)
{
	static const struct {
		const char *story;
		uint32_t group;
		uint64_t first, count;
		int want;
	} rows[] = {
		{"all", 0, 0, RECORDS, SHARD_OK},
		{"the last", 1, RECORDS - 1, 1, SHARD_OK},
		{"none at the end", 0, RECORDS, 0, SHARD_OK},
		{"none at the start", 0, 0, 0, SHARD_OK},
		{"one past the end", 0, RECORDS, 1, SHARD_E_ARGUMENT},
		{"one too many", 0, 0, RECORDS + 1, SHARD_E_ARGUMENT},
		{"none behind the end", 0, RECORDS + 1, 0, SHARD_E_ARGUMENT},
		{"first + count wraps to 1", 0, 2, UINT64_MAX, SHARD_E_ARGUMENT},
		{"the last of 2^64", 0, UINT64_MAX, 1, SHARD_E_ARGUMENT},
		{"group 2 of 2", 2, 0, 1, SHARD_E_ARGUMENT},
		{"group 2^32 - 1", UINT32_MAX, 0, 1, SHARD_E_ARGUMENT},
	};
	uint8_t *dst = malloc(RECORDS * 1216);

	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
		struct shard_reader *r;

		make_shard(codec);
		r = open_with(SHARD_CHECK_FIRST, 0);
		for (size_t i = 0; i < COUNT(rows); i++) {
			struct shard_error err = {.message = ""};

			STORY("%s, codec %u", rows[i].story, codec);
			CHECK_EQ(shard_reader_read(r, rows[i].group, rows[i].first, rows[i].count, dst, &err),
				 rows[i].want);
			CHECK(!rows[i].want || strstr(err.message, shard.text));
		}
		for (uint64_t first = 0; first < RECORDS; first += 3)
			for (uint64_t count = 1; count <= RECORDS - first; count += 4)
				for (uint32_t g = 0; g < 2; g++) {
					CHECK_OK(shard_reader_read(r, g, first, count, dst, &fixture_err));
					for (uint64_t k = 0; k < count; k++)
						check_photo(&schema, g, first + k, dst + k * schema.group[g].stride);
				}
		shard_reader_close(r);
	}
	free(dst);
	shard_reader_close(NULL);
}

TEST(views_keys_and_misses_stay_inside)
{
	struct shard_view v = {&v, 77};
	struct shard_section section;
	struct shard_error err;
	struct shard_moments moments;
	struct shard_miss miss;
	struct shard_reader *r;
	uint64_t records;
	uint32_t sections = 0;

	make_shard(SHARD_LZ4);
	r = open_with(SHARD_CHECK_FIRST, 0);
	CHECK_EQ(shard_reader_view(r, 1, RECORDS, &v, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_reader_view(r, 2, 0, &v, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_reader_view(r, 0, 0, &v, &err), SHARD_E_UNSUPPORTED);
	CHECK(strstr(err.message, "group 0 is compressed"));
	CHECK_EQ(shard_reader_key(r, RECORDS, &v, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_reader_miss(r, RECORDS / 5, &miss, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_reader_miss(r, UINT64_C(1) << 60, &miss, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_reader_moments(r, 0, 3, &moments, &err), SHARD_END);
	CHECK_EQ(shard_reader_moments(r, UINT32_MAX, 0, &moments, &err), SHARD_END);
	CHECK_EQ(shard_reader_class_records(r, PHOTO_LABEL, PHOTO_CLASSES, &records, &err), SHARD_END);
	CHECK_EQ(shard_reader_class_records(r, PHOTO_LABEL, UINT64_MAX, &records, &err), SHARD_END);
	while (!shard_reader_section(r, sections, &section, NULL))
		sections++;
	CHECK_EQ(sections, 10);
	CHECK_EQ(shard_reader_section(r, UINT32_MAX, &section, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(v.bytes, 77); /* nothing was written on error */
	CHECK_OK(shard_reader_view(r, 1, 7, &v, &fixture_err));
	check_photo(&schema, 1, 7, v.data);
	shard_reader_close(r);
}

TEST(options_are_checked)
{
	struct shard_reader_options o = {.size = sizeof(o), .check = 4};
	struct shard_reader *r = (void *)&o;
	struct shard_error err;

	CHECK_EQ(shard_reader_open(&r, shard.text, &o, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "check is 4"));
	o = (struct shard_reader_options){.size = sizeof(o), .guard = 3};
	CHECK_EQ(shard_reader_open(&r, shard.text, &o, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "guard 3, pages_only 0, reserved 0; must be at most 3, 2, 1 and 0"));
	o = (struct shard_reader_options){.size = 0};
	CHECK_EQ(shard_reader_open(&r, shard.text, &o, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_reader_open(&r, "/dev/null", NULL, &err), SHARD_E_IO);
	CHECK(r == (void *)&o);
}

/* ---- pages only ---- */

enum call { READ, VIEW, KEY, PROVENANCE, PIXELS, MISS, GUARDED, SECTION, VERIFY, CALL_COUNT };

static void no_work(void *context)
{
	(void)context;
}

static int call_of(enum call call, struct shard_reader *r, struct shard_error *err)
{
	static uint8_t record[1216];
	struct shard_section section;
	struct shard_view view;
	struct shard_miss miss;
	uint32_t pixels;

	switch (call) {
	case READ:
		return shard_reader_read(r, 0, 0, 1, record, err);
	case VIEW:
		return shard_reader_view(r, 0, 0, &view, err);
	case KEY:
		return shard_reader_key(r, 0, &view, err);
	case PROVENANCE:
		return shard_reader_provenance(r, &view, err);
	case PIXELS:
		return shard_reader_pixels(r, &pixels, err);
	case MISS:
		return shard_reader_miss(r, 0, &miss, err);
	case GUARDED:
		return shard_reader_guarded(r, no_work, NULL, err);
	case SECTION:
		return shard_reader_section(r, 0, &section, err);
	case VERIFY:
		return shard_reader_verify(r, NULL, NULL, err);
	default:
		return SHARD_END;
	}
}

TEST(of_pages_only_the_pages_are_there)
{
	static const char *const names[] = {"read", "view",    "key",	  "provenance", "pixels",
					    "miss", "guarded", "section", "verify"};
	struct shard_reader_options o = {.size = sizeof(o), .pages_only = 1};
	struct shard_reader *all, *pages;
	struct shard_info info[2];
	struct shard_moments moments[2];
	uint64_t records[2];
	struct shard_error err;

	make_shard(SHARD_RAW);
	all = open_with(SHARD_CHECK_DEVICE, SHARD_GUARD_ON);
	CHECK_OK(shard_reader_open(&pages, shard.text, &o, &fixture_err));
	for (enum call c = READ; c < CALL_COUNT; c++) {
		STORY("%s", names[c]);
		CHECK_OK(call_of(c, all, &fixture_err));
		CHECK_EQ(call_of(c, pages, &err), SHARD_E_ARGUMENT);
		CHECK(strstr(err.message, ": was opened with pages_only, which gives its schema, info and statistics "
					  "only"));
	}
	shard_reader_info(all, &info[0]);
	shard_reader_info(pages, &info[1]);
	CHECK_MEM(&info[0], &info[1], sizeof(info[0]));
	CHECK_MEM(shard_reader_schema(all), shard_reader_schema(pages), sizeof(struct shard_schema));
	for (uint32_t f = 0; f < schema.field_count; f++)
		for (uint32_t i = 0; i <= PHOTO_CLASSES; i++) {
			int want = shard_reader_moments(all, f, i, &moments[0], &err);

			CHECK_EQ(shard_reader_moments(pages, f, i, &moments[1], &err), want);
			CHECK(want || !memcmp(&moments[0], &moments[1], sizeof(moments[0])));
			want = shard_reader_class_records(all, f, i, &records[0], &err);
			CHECK_EQ(shard_reader_class_records(pages, f, i, &records[1], &err), want);
			CHECK(want || records[0] == records[1]);
		}
	shard_reader_close(all);
	shard_reader_close(pages);
	o.pages_only = 2;
	CHECK_EQ(shard_reader_open(&pages, shard.text, &o, &err), SHARD_E_ARGUMENT);
	o.pages_only = 0;
	o.reserved = 1;
	CHECK_EQ(shard_reader_open(&pages, shard.text, &o, &err), SHARD_E_ARGUMENT);
}

/* ---- damage is found where it is used, and only there ---- */

/* What reading each record says, with a byte of one record flipped. */
static const struct {
	const char *story;
	uint32_t check;
	int damaged_unit, other_units, again;
} modes[] = {
	{"device", SHARD_CHECK_DEVICE, SHARD_E_CORRUPT, SHARD_OK, SHARD_OK},
	{"first", SHARD_CHECK_FIRST, SHARD_E_CORRUPT, SHARD_OK, SHARD_OK},
	{"always", SHARD_CHECK_ALWAYS, SHARD_E_CORRUPT, SHARD_OK, SHARD_E_CORRUPT},
	{"never", SHARD_CHECK_NEVER, SHARD_OK, SHARD_OK, SHARD_OK},
};

TEST(a_flipped_byte_is_found_at_first_use_and_only_there)
{
	uint8_t dst[1216];

	make_shard(SHARD_RAW);
	for (uint32_t g = 0; g < 2; g++) {
		uint64_t offset = section_of(shard.text, 1, g).offset, stride = schema.group[g].stride;
		uint64_t unit = schema.group[g].unit_records, victim = 21;

		for (size_t m = 0; m < COUNT(modes); m++) {
			struct shard_reader *r;
			struct shard_view v;

			/* in the padding: hashed, too */
			file_flip(shard.text, offset + victim * stride + stride - 1, 1);
			r = open_with(modes[m].check, 0);
			for (uint64_t i = 0; i < RECORDS; i++) {
				struct shard_error err = {.message = ""};
				bool here = i / unit == victim / unit;
				char want[64];

				STORY("check %s, group %u, record %" PRIu64, modes[m].story, g, i);
				CHECK_EQ(shard_reader_read(r, g, i, 1, dst, &err),
					 here ? modes[m].damaged_unit : modes[m].other_units);
				CHECK_EQ(shard_reader_view(r, g, i, &v, NULL),
					 here ? modes[m].damaged_unit : modes[m].other_units);
				snprintf(want, sizeof(want), ": I44: unit %" PRIu64 " of group %u", victim / unit, g);
				CHECK(!here || !modes[m].damaged_unit ||
				      (strstr(err.message, want) && strstr(err.message, shard.text)));
			}
			shard_reader_close(r);
			file_flip(shard.text, offset + victim * stride + stride - 1, 1);

			/*
			 * good when it was first used, damaged afterwards: only `always` looks
			 * again
			 */
			STORY("check %s, group %u, again", modes[m].story, g);
			r = open_with(modes[m].check, 0);
			CHECK_OK(shard_reader_read(r, g, victim, 1, dst, &fixture_err));
			file_flip(shard.text, offset + victim * stride, 1);
			CHECK_EQ(shard_reader_read(r, g, victim, 1, dst, NULL), modes[m].again);
			shard_reader_close(r);
			file_flip(shard.text, offset + victim * stride, 1);
		}
	}
}

TEST(a_flipped_byte_of_a_chunk)
{
	uint64_t offset;
	uint8_t dst[1216];

	make_shard(SHARD_LZ4);
	offset = section_of(shard.text, 1, 0).offset;
	/* chunks are checked each time */
	for (uint32_t check = SHARD_CHECK_DEVICE; check <= SHARD_CHECK_FIRST; check++) {
		struct shard_error err = {.message = ""};
		struct shard_reader *r = open_with(check, 0);

		STORY("check %u", check);
		if (check == SHARD_CHECK_NEVER) {
			shard_reader_close(r);
			continue;
		}
		CHECK_OK(shard_reader_read(r, 0, 3, 1, dst, &fixture_err));
		check_photo(&schema, 0, 3, dst);
		file_flip(shard.text, offset, 1);
		CHECK_EQ(shard_reader_read(r, 0, 3, 1, dst, &err), SHARD_E_CORRUPT);
		CHECK(strstr(err.message, ": I46: chunk 0 of group 0"));
		CHECK_OK(shard_reader_read(r, 0, 4, 1, dst, &fixture_err));
		check_photo(&schema, 0, 4, dst);
		shard_reader_close(r);
		file_flip(shard.text, offset, 1);
	}
}

TEST(a_flipped_byte_of_a_table)
{
	static const struct {
		uint32_t type, group;
		const char *story;
	} tables[] = {{2, 0, "HASH"}, {2, 1, "HASH"}, {3, 0, "CIDX"}, {4, 0, "KOFF"},
		      {5, 0, "KBLB"}, {6, 0, "STAT"}, {7, 0, "MISS"}, {8, 0, "PROV"}};

	make_shard(SHARD_LZ4);
	for (size_t i = 0; i < COUNT(tables); i++) {
		struct shard_section s = section_of(shard.text, tables[i].type, tables[i].group);
		struct shard_reader *r;
		struct shard_moments moments;
		struct shard_miss miss;
		struct shard_view v;
		uint8_t dst[1216];
		int rc[6];

		STORY("%s of group %u", tables[i].story, tables[i].group);
		file_flip(shard.text, s.offset + s.bytes - 1, 0x80);
		r = open_with(SHARD_CHECK_FIRST, 0); /* which looks at pages only */
		rc[0] = shard_reader_read(r, 0, 0, 1, dst, NULL);
		rc[1] = shard_reader_read(r, 1, 0, 1, dst, NULL);
		rc[2] = shard_reader_key(r, 0, &v, NULL);
		rc[3] = shard_reader_moments(r, 0, 0, &moments, NULL);
		rc[4] = shard_reader_miss(r, 0, &miss, NULL);
		rc[5] = shard_reader_provenance(r, &v, NULL);
		CHECK_EQ(rc[0], tables[i].group == 0 && (tables[i].type == 2 || tables[i].type == 3) ? SHARD_E_CORRUPT
												     : SHARD_OK);
		CHECK_EQ(rc[1], tables[i].group == 1 ? SHARD_E_CORRUPT : SHARD_OK);
		CHECK_EQ(rc[2], tables[i].type == 4 || tables[i].type == 5 ? SHARD_E_CORRUPT : SHARD_OK);
		CHECK_EQ(rc[3], tables[i].type == 6 ? SHARD_E_CORRUPT : SHARD_OK);
		CHECK_EQ(rc[4], tables[i].type == 7 ? SHARD_E_CORRUPT : SHARD_OK);
		CHECK_EQ(rc[5], tables[i].type == 8 ? SHARD_E_CORRUPT : SHARD_OK);
		shard_reader_close(r);
		file_flip(shard.text, s.offset + s.bytes - 1, 0x80);
	}
}

/* Tables that nobody checked still lead nowhere: any byte of them, with check never. */
TEST(unchecked_tables_lead_nowhere)
{
	static const uint32_t types[] = {2, 3, 4, 5, 6, 7, 8};

	make_shard(SHARD_LZ4);
	for (size_t t = 0; t < COUNT(types); t++) {
		struct shard_section s = section_of(shard.text, types[t], 0);

		for (uint64_t at = 0; at < s.bytes; at += 1 + s.bytes / 97) {
			struct shard_reader *r;
			struct shard_moments moments;
			struct shard_miss miss;
			struct shard_view v;
			uint64_t records;
			uint8_t dst[1216];
			volatile uint8_t sink = 0;

			STORY("section %u, byte %" PRIu64, types[t], at);
			file_flip(shard.text, s.offset + at, 0xff);
			r = open_with(SHARD_CHECK_NEVER, 0);
			for (uint64_t i = 0; i < RECORDS; i += 7) {
				(void)shard_reader_read(r, 0, i, 1, dst, NULL);
				if (!shard_reader_key(r, i, &v, NULL))
					for (size_t k = 0; k < v.bytes; k++)
						sink ^= ((const uint8_t *)v.data)[k];
			}
			(void)shard_reader_moments(r, 0, 2, &moments, NULL);
			(void)shard_reader_class_records(r, PHOTO_LABEL, 9, &records, NULL);
			CHECK_EQ(shard_reader_miss(r, 1, &miss, NULL), SHARD_OK);
			(void)sink;
			shard_reader_close(r);
			file_flip(shard.text, s.offset + at, 0xff);
		}
	}
}

/* ---- threads ---- */

#define THREADS 4

struct shared {
	struct shard_reader *r;
	unsigned thread;
	int failed;
};

static void *read_everything(void *arg)
{
	struct shared *s = arg;
	struct prng p = {s->thread};
	uint8_t dst[3 * 1216], want[1216];

	for (int turn = 0; turn < 300; turn++) {
		uint32_t g = (uint32_t)prng_below(&p, 2);
		uint64_t first = prng_below(&p, RECORDS - 2), stride = schema.group[g].stride;
		struct shard_moments moments;
		struct shard_view key;
		char name[64];

		s->failed |= shard_reader_read(s->r, g, first, 3, dst, NULL);
		for (uint64_t k = 0; k < 3; k++) {
			memset(want, 0, sizeof(want));
			photo_record(&schema, g, first + k, want);
			s->failed |= memcmp(dst + k * stride, want, (size_t)stride) != 0;
		}
		s->failed |= shard_reader_key(s->r, first, &key, NULL);
		s->failed |= key.bytes != photo_key(first, name) || memcmp(key.data, name, key.bytes);
		s->failed |= shard_reader_moments(s->r, 0, 0, &moments, NULL);
	}
	return NULL;
}

TEST(threads_share_a_reader)
{
	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++)
		for (uint32_t check = SHARD_CHECK_DEVICE; check <= SHARD_CHECK_FIRST; check++) {
			struct shared s[THREADS];
			pthread_t thread[THREADS];
			struct shard_reader *r;

			STORY("codec %u, check %u", codec, check);
			make_shard(codec);
			r = open_with(check, 1);
			for (unsigned i = 0; i < THREADS; i++) {
				s[i] = (struct shared){r, i, 0};
				CHECK_EQ(pthread_create(&thread[i], NULL, read_everything, &s[i]), 0);
			}
			for (unsigned i = 0; i < THREADS; i++) {
				CHECK_EQ(pthread_join(thread[i], NULL), 0);
				CHECK_EQ(s[i].failed, 0);
			}
			shard_reader_close(r);
		}
}

/* ---- files that shrink ---- */

/*
 * Everything that reads the map, after the file was cut to its header.  The first answer that is no
 * IO error is returned.
 */
static int use_all(struct shard_reader *r, uint32_t check)
{
	struct shard_moments moments;
	struct shard_miss miss;
	struct shard_view v;
	uint64_t records;
	uint8_t dst[1216];
	int rc[] = {shard_reader_read(r, 0, 40, 1, dst, NULL), shard_reader_read(r, 1, 0, 1, dst, NULL),
		    /* reads nothing then */
		    check == SHARD_CHECK_NEVER ? SHARD_E_IO : shard_reader_view(r, 1, 0, &v, NULL),
		    shard_reader_key(r, 0, &v, NULL), shard_reader_miss(r, 0, &miss, NULL),
		    shard_reader_moments(r, 0, 0, &moments, NULL),
		    shard_reader_class_records(r, PHOTO_LABEL, 0, &records, NULL),
		    shard_reader_verify(r, NULL, NULL, NULL)};

	for (size_t i = 0; i < COUNT(rc); i++)
		if (rc[i] != SHARD_E_IO)
			return 100 + (int)i;
	return SHARD_E_IO;
}

TEST(with_guard_a_cut_file_is_an_error)
{
	/* 0 is the default, and 1 was the only way to switch it on */
	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++)
		for (uint32_t check = SHARD_CHECK_DEVICE; check <= SHARD_CHECK_FIRST; check++)
			for (int before = 0; before < 2; before++) { /* unused so far; all tables checked already */
				struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1};
				struct shard_error err;
				struct shard_reader *r;
				uint8_t dst[1216];

				STORY("codec %u, check %u, used %d", codec, check, before);
				make_shard(codec);
				r = open_with(check, before ? SHARD_GUARD_ON : 1);
				if (before)
					CHECK_OK(shard_reader_verify(r, &o, NULL, &fixture_err));
				CHECK_EQ(truncate(shard.text, 4096), 0);
				CHECK_EQ(shard_reader_read(r, 0, 40, 1, dst, &err), SHARD_E_IO);
				CHECK(strstr(err.message, "cannot be read any more"));
				CHECK_EQ(use_all(r, check), SHARD_E_IO);
				shard_reader_close(r);
			}
}

static void *use_all_blocked(void *arg)
{
	static uint8_t all[RECORDS * 1216];
	struct shard_reader *r = arg;
	sigset_t signals, now;
	int rc;

	sigfillset(&signals);
	if (pthread_sigmask(SIG_SETMASK, &signals, NULL))
		return (void *)1;
	rc = use_all(r, SHARD_CHECK_FIRST); /* its threads of verify inherit the mask */
	if (rc != SHARD_E_IO)
		return (void *)(uintptr_t)(100 + rc);
	/* much at once: whether the signal is blocked is asked again */
	sigemptyset(&signals);
	if (pthread_sigmask(SIG_SETMASK, &signals, NULL) ||
	    shard_reader_read(r, 0, 0, RECORDS, all, NULL) != SHARD_E_IO)
		return (void *)2;
	sigfillset(&signals);
	if (pthread_sigmask(SIG_SETMASK, &signals, NULL) ||
	    shard_reader_read(r, 0, 0, RECORDS, all, NULL) != SHARD_E_IO)
		return (void *)3;
	if (pthread_sigmask(SIG_BLOCK, NULL, &now) || sigismember(&now, SIGBUS) != 1)
		return (void *)4;
	return NULL;
}

TEST(with_guard_a_thread_may_block_the_signal)
{
	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
		struct shard_reader *r;
		pthread_t thread;
		void *end;

		STORY("codec %u", codec);
		make_shard(codec);
		r = open_with(SHARD_CHECK_FIRST, SHARD_GUARD_ON);
		CHECK_EQ(truncate(shard.text, 4096), 0);
		CHECK_EQ(pthread_create(&thread, NULL, use_all_blocked, r), 0);
		CHECK_EQ(pthread_join(thread, &end), 0);
		CHECK_EQ((uintptr_t)end, 0);
		shard_reader_close(r);
	}
}

TEST(without_guard_it_is_sigbus)
{
	int status;
	pid_t pid;

	make_shard(SHARD_RAW);
	pid = fork();
	if (!pid) {
		struct shard_reader *r = open_with(SHARD_CHECK_FIRST, SHARD_GUARD_OFF);
		struct sigaction plain = {.sa_handler = SIG_DFL};

		sigaction(SIGBUS, &plain, NULL); /* neither a sanitizer's nor ours from before */
		_exit(truncate(shard.text, 4096) || use_all(r, SHARD_CHECK_FIRST) != SHARD_E_IO);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

TEST(a_file_that_is_cut_before_it_is_opened)
{
	struct shard_reader *r;
	struct shard_error err;

	make_shard(SHARD_RAW);
	CHECK_EQ(truncate(shard.text, 40960), 0);
	CHECK_EQ(shard_reader_open(&r, shard.text, NULL, &err), SHARD_E_CORRUPT);
	CHECK(strstr(err.message, "I4: "));
	CHECK_EQ(truncate(shard.text, 40961), 0);
	CHECK_EQ(shard_reader_open(&r, shard.text, NULL, &err), SHARD_E_CORRUPT);
	CHECK(strstr(err.message, "I1: "));
	unlink(shard.text);
	CHECK_EQ(shard_reader_open(&r, shard.text, NULL, &err), SHARD_E_IO);
	CHECK_EQ(err.os_code, 2);
}

TEST_MAIN()
