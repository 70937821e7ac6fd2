/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_concat.c - a loader of several datasets, one behind the other, delivers what it would of one
 * dataset with the same records
 *
 * That dataset is the slow twin: it is packed as well, and its order says what must come.  Parts in
 * another order must be noticed.
 *
 * TIMEOUT: 300
 */
#include "tests/load/batches.h"
#include "tests/load/kinds.h"

#define PARTS_MOST 5u
#define SHARDS	   3u

/* Records of the shards of each part.  A dataset without records has one shard, which is empty. */
struct shape {
	const char *story;
	uint32_t parts;
	uint64_t shard[PARTS_MOST][SHARDS];
};

static const struct shape shapes[] = {
	{"one part", 1, {{40, 1, 62}}},
	{"two parts", 2, {{40, 1, 6}, {53}}},
	{"parts of one record", 3, {{1}, {31, 1, 30}, {1}}},
	{"empty parts", 5, {{0}, {17, 2}, {0}, {83}, {0}}},
	{"five parts of prime sizes", 5, {{13}, {7, 4}, {29}, {2}, {19, 4}}},
};

static struct path part_folder[PARTS_MOST];
static struct shard_dataset *part[PARTS_MOST], *whole, *joined;
static uint32_t part_count;

static size_t shards_of(const uint64_t *shard)
{
	size_t n = 1;

	while (n < SHARDS && shard[n])
		n++;
	return n;
}

static void drop_joined(void)
{
	shard_dataset_close(joined);
	joined = NULL;
	for (uint32_t p = 0; p < PARTS_MOST; p++) {
		shard_dataset_close(part[p]);
		part[p] = NULL;
	}
}

/* The parts of a shape, and one dataset of their records, which becomes `ds`.  Codecs may differ. */
static void make_shape(const struct shape *shape, uint32_t side, const uint32_t codec[2])
{
	uint64_t all[PARTS_MOST * SHARDS];
	size_t count = 0, n;

	drop_joined();
	fixture_first = 0;
	for (uint32_t p = 0; p < shape->parts; p++) {
		struct shard_schema s = photo_schema(side, codec[p % 2]);
		char name[16];

		snprintf(name, sizeof(name), "part%u", p);
		new_folder(&part_folder[p], name);
		n = shards_of(shape->shard[p]);
		write_dataset(part_folder[p].text, &s, shape->shard[p], n);
		CHECK_OK(shard_dataset_open(&part[p], part_folder[p].text, NULL, &fixture_err));
		for (size_t i = 0; i < n; i++) {
			fixture_first += shape->shard[p][i];
			all[count++] = shape->shard[p][i];
		}
	}
	part_count = shape->parts;
	fixture_first = 0;
	open_photos(side, codec[0], all, count);
	whole = ds;
	CHECK_OK(shard_dataset_concat(&joined, part, part_count, &fixture_err));
}

/* Some epochs of a loader over `from`, held against the order of the whole dataset. */
static void run(struct wanted *w, struct shard_dataset *from, struct shard_loader_options o, uint64_t seed)
{
	struct lent lent = {.count = 0};
	struct prng p = {seed};
	struct shard_loader *l;

	wanted_open(w, o);
	ds = from;
	l = loader_of(w);
	consume(w, l, &lent, &p, 40, 2);
	give_all(w, l, &lent);
	if (!w->complaint[0]) { /* behind a seek */
		CHECK_OK(shard_loader_seek(l, 3, w->total / 2, &fixture_err));
		wanted_seek(w, 3, w->total / 2);
		consume(w, l, &lent, &p, 20, 1);
		give_all(w, l, &lent);
	}
	close_loader(l);
	ds = whole;
}

static const uint32_t raw[2] = {SHARD_RAW, SHARD_RAW}, packed[2] = {SHARD_LZ4, SHARD_LZ4},
		      mixed[2] = {SHARD_RAW, SHARD_LZ4};

TEST(a_loader_delivers_what_it_would_of_one_dataset)
{
	static struct wanted w;

	for (size_t i = 0; i < COUNT(shapes); i++)
		for (unsigned stored = 0; stored < 3; stored++) {
			make_shape(&shapes[i], stored == 1 ? 20 : 40, stored == 0 ? raw : stored == 1 ? packed : mixed);
			for (size_t kind = 0; kind < KINDS; kind++)
				for (uint32_t tail = SHARD_DROP; tail <= SHARD_KEEP; tail++)
					for (uint32_t path = SHARD_PATH_AUTO; path <= SHARD_PATH_PREAD; path++) {
						struct shard_loader_options o = of_kind(kind);

						STORY("%s, stored %u, kind %zu, tail %u, path %u", shapes[i].story,
						      stored, kind, tail, path);
						o.tail = tail;
						o.path = path;
						o.world = tail == SHARD_KEEP ? 1 : 1 + path % 3;
						o.rank = o.world - 1;
						run(&w, joined, o, 100 * i + 10 * kind + path);
						CHECK_NO_COMPLAINT(&w);
					}
		}
	drop_joined();
}

/* The control: if the parts came in another order, this test would say so. */
TEST(another_order_of_parts_is_noticed)
{
	static struct wanted w;

	make_shape(&shapes[4], 20, raw);
	for (size_t kind = 0; kind < KINDS; kind++) {
		struct shard_dataset *other[PARTS_MOST] = {part[0], part[1], part[3], part[2], part[4]}, *wrong;

		CHECK_OK(shard_dataset_concat(&wrong, other, PARTS_MOST, &fixture_err));
		run(&w, wrong, of_kind(kind), kind);
		CHECK(strstr(w.complaint, "is not that of record"));
		shard_dataset_close(wrong);
	}
	drop_joined();
}

/* ---- records by number, and what it says of itself ---- */

TEST(records_keys_and_columns_are_those_of_one_dataset)
{
	for (size_t i = 0; i < COUNT(shapes); i++) {
		uint64_t idx[RECORDS_CAP], shards = 0, first = 0;
		uint8_t *got = malloc(RECORDS_CAP * 64), *want = malloc(RECORDS_CAP * 64);
		char key[2][SHARD_KEY_BYTES_MAX];
		struct shard_dataset_info info;
		void *dst[2] = {NULL, got};
		struct shard_entry e;
		size_t bytes[2];

		STORY("%s", shapes[i].story);
		make_shape(&shapes[i], 20, mixed);
		shard_dataset_info(joined, &info);
		CHECK_EQ(info.record_count, record_total);
		CHECK_EQ(info.class_count, PHOTO_CLASSES);
		CHECK_STR(shard_dataset_class_name(joined, 1), shard_dataset_class_name(whole, 1));
		for (uint64_t n = 0; n < record_total; n++) {
			idx[n] = record_total - 1 - n;
			CHECK_OK(shard_dataset_key(joined, n, key[0], &bytes[0], &fixture_err));
			CHECK_OK(shard_dataset_key(whole, n, key[1], &bytes[1], &fixture_err));
			CHECK(bytes[0] == bytes[1] && !memcmp(key[0], key[1], bytes[0]));
		}
		CHECK_OK(shard_dataset_read(joined, idx, record_total, dst, &fixture_err));
		dst[1] = want;
		CHECK_OK(shard_dataset_read(whole, idx, record_total, dst, &fixture_err));
		CHECK(!memcmp(got, want, record_total * schema.group[1].stride));
		for (uint64_t from = 0; from < record_total; from += 9) {
			uint64_t count = record_total - from < 33 ? record_total - from : 33;

			for (uint32_t f = PHOTO_LABEL; f <= PHOTO_WEIGHT; f++) {
				CHECK_OK(shard_dataset_column(joined, &shard_dataset_schema(joined)->field[f], from,
							      count, got, &fixture_err));
				CHECK_OK(
					shard_dataset_column(whole, &schema.field[f], from, count, want, &fixture_err));
				CHECK(!memcmp(got, want, count * schema.field[f].bytes));
			}
		}
		for (; shards < info.shard_count; shards++, first += e.record_count) {
			CHECK_OK(shard_dataset_entry(joined, shards, &e, &fixture_err));
			CHECK_EQ(e.first_record, first);
		}
		CHECK_EQ(first, record_total);
		free(got);
		free(want);
	}
	drop_joined();
}

TEST(selections_choose_what_they_would_of_one_dataset)
{
	static struct wanted w;
	static const int64_t labels[] = {3, 7};
	struct shard_selection *of_joined, *of_whole;
	uint64_t got[RECORDS_CAP], want[RECORDS_CAP];
	struct shard_selection_info a, b;

	make_shape(&shapes[3], 20, mixed);
	CHECK_OK(shard_select_where(&of_joined, joined, NULL, "label", labels, 2, &fixture_err));
	CHECK_OK(shard_select_where(&of_whole, whole, NULL, "label", labels, 2, &fixture_err));
	shard_selection_info(of_joined, &a);
	shard_selection_info(of_whole, &b);
	CHECK_EQ(a.record_count, b.record_count);
	CHECK(strcmp(a.digest, b.digest));
	CHECK_OK(shard_selection_records(of_joined, 0, a.record_count, got, &fixture_err));
	CHECK_OK(shard_selection_records(of_whole, 0, b.record_count, want, &fixture_err));
	CHECK(!memcmp(got, want, a.record_count * sizeof(*got)));
	for (size_t kind = 0; kind < KINDS; kind++) {
		struct shard_loader_options o = of_kind(kind);
		struct lent lent = {.count = 0};
		struct prng p = {kind};
		struct shard_loader *l;

		o.batch_records = 3;
		o.selection = of_whole;
		wanted_open(&w, o);
		ds = joined;
		w.o.selection = of_joined;
		l = loader_of(&w);
		consume(&w, l, &lent, &p, 30, 2);
		give_all(&w, l, &lent);
		CHECK_NO_COMPLAINT(&w);
		close_loader(l);
		CHECK_EQ(shard_loader_open(&l, joined, &o, &fixture_err), SHARD_E_MISMATCH);
		ds = whole;
	}
	shard_selection_close(of_joined);
	shard_selection_close(of_whole);
	drop_joined();
}

/* ---- resume ---- */

TEST(a_token_is_good_for_the_same_parts_in_the_same_order)
{
	static struct wanted w;
	struct shard_dataset *other[PARTS_MOST];
	char token[SHARD_TOKEN_BYTES];
	struct shard_loader *l;

	make_shape(&shapes[4], 20, raw);
	for (size_t kind = 0; kind < KINDS; kind++) {
		struct shard_loader_options o = of_kind(kind), more;
		struct lent lent = {.count = 0};
		struct prng p = {kind};

		wanted_open(&w, o);
		ds = joined;
		l = loader_of(&w);
		consume(&w, l, &lent, &p, 5, 1);
		give_all(&w, l, &lent);
		shard_loader_token(l, token);
		close_loader(l);
		STORY("the same parts, opened again");
		memcpy(other, part, sizeof(other));
		shard_dataset_close(joined);
		CHECK_OK(shard_dataset_concat(&joined, other, part_count, &fixture_err));
		ds = joined;
		l = loader_of(&w);
		CHECK_OK(shard_loader_resume(l, token, &fixture_err));
		consume(&w, l, &lent, &p, 25, 2);
		give_all(&w, l, &lent);
		CHECK_NO_COMPLAINT(&w);
		close_loader(l);
		STORY("other parts");
		for (unsigned how = 0; how < 4; how++) {
			struct shard_dataset *wrong = whole;

			memcpy(other, part, sizeof(other));
			other[1] = how == 0 ? part[2] : part[1];
			other[2] = how == 0 ? part[1] : part[2];
			if (how < 3)
				CHECK_OK(shard_dataset_concat(&wrong, other + (how == 2), part_count - (how > 0),
							      &fixture_err));
			more = o;
			more.resume_appended = how & 1;
			CHECK_OK(shard_loader_open(&l, wrong, &more, &fixture_err));
			CHECK_EQ(shard_loader_resume(l, token, &fixture_err), SHARD_E_MISMATCH);
			CHECK(strstr(fixture_err.message, "the token belongs to dataset"));
			shard_loader_close(l);
			if (wrong != whole)
				shard_dataset_close(wrong);
		}
		ds = whole;
	}
	drop_joined();
}

/* ---- damage ---- */

#define DAMAGED (40 + 1 + 6 + 7) /* record 7 of the second part */

TEST(a_damaged_record_is_named_by_its_number_in_all)
{
	for (uint32_t how = SHARD_CORRUPT_FAIL; how <= SHARD_CORRUPT_MASK; how++) {
		struct shard_loader_options o = of_kind(GLOBALLY);
		unsigned flagged = 0, rows = 0;
		struct shard_loader *l;
		struct shard_batch b;
		int rc;

		make_shape(&shapes[1], 40, raw);
		damage_record(&part_folder[1], 0, 0, 7 * photo_schema(40, SHARD_RAW).group[0].stride + 11);
		o.tail = SHARD_KEEP;
		o.repair.on_corrupt = how;
		CHECK_OK(shard_loader_open(&l, joined, &o, &fixture_err));
		while (!(rc = shard_loader_next(l, &b, &fixture_err))) {
			for (uint32_t i = 0; i < b.record_count; i++, rows++)
				if (b.row_flags[i]) {
					CHECK_EQ(b.record[i] == DAMAGED, how == SHARD_CORRUPT_MASK);
					flagged++;
				} else {
					CHECK(b.record[i] != DAMAGED);
				}
			CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		}
		CHECK_EQ(rc, how == SHARD_CORRUPT_FAIL ? SHARD_E_CORRUPT : SHARD_END);
		if (how == SHARD_CORRUPT_FAIL)
			CHECK(strstr(fixture_err.message, part_folder[1].text));
		else
			CHECK_EQ(rows, record_total);
		CHECK_EQ(flagged, how != SHARD_CORRUPT_FAIL);
		shard_loader_close(l);
	}
	drop_joined();
}

/* ---- what is refused ---- */

static void refused(int got, int want, const char *words)
{
	CHECK_EQ(got, want);
	if (!strstr(fixture_err.message, words))
		CHECK_STR(fixture_err.message, words);
}

TEST(what_is_not_one_dataset_is_refused)
{
	struct shard_dataset_options never = {.size = sizeof(never), .check = SHARD_CHECK_NEVER};
	struct shard_mix_source source = {.weight = 1};
	struct shard_dataset *out = NULL, *two[2];
	struct shard_loader_options o = of_kind(GLOBALLY);
	struct shard_verify_report report;
	uint8_t got[64 * 64 * 3];
	void *dst[2] = {got, NULL};
	uint64_t idx = 0;
	struct shard_loader *l;
	struct shard_view text;
	struct shard_mix *mix;
	struct shard_schema s;

	make_shape(&shapes[1], 20, raw);
	refused(shard_dataset_concat(&out, part, 0, &fixture_err), SHARD_E_ARGUMENT, "there are no datasets");
	two[0] = part[0];
	two[1] = joined;
	refused(shard_dataset_concat(&out, two, 2, &fixture_err), SHARD_E_ARGUMENT,
		"part 1 is a concatenation of 2 datasets; give the datasets that it was made of");
	source.ds = joined;
	refused(shard_mix_open(&mix, &source, 1, NULL, &fixture_err), SHARD_E_ARGUMENT, "source 0 is a concatenation");
	refused(shard_dataset_verify(joined, NULL, &report, &fixture_err), SHARD_E_ARGUMENT,
		"verify each of its parts");
	shard_dataset_manifest(joined, &text);
	CHECK_EQ(text.bytes, 0);
	STORY("other checks");
	CHECK_OK(shard_dataset_open(&two[1], part_folder[1].text, &never, &fixture_err));
	refused(shard_dataset_concat(&out, two, 2, &fixture_err), SHARD_E_ARGUMENT, "different options check or guard");
	shard_dataset_close(two[1]);
	STORY("other classes");
	fixture_class = "z";
	new_folder(&part_folder[4], "classes");
	write_dataset(part_folder[4].text, &schema, (uint64_t[]){5}, 1);
	fixture_class = "a";
	CHECK_OK(shard_dataset_open(&two[1], part_folder[4].text, NULL, &fixture_err));
	refused(shard_dataset_concat(&out, two, 2, &fixture_err), SHARD_E_MISMATCH, "pack them with the same classes");
	CHECK(!strstr(fixture_err.message, "leave out"));
	shard_dataset_close(two[1]);
	STORY("images of another size");
	s = photo_schema(21, SHARD_RAW);
	new_folder(&part_folder[4], "larger");
	write_dataset(part_folder[4].text, &s, (uint64_t[]){5}, 1);
	CHECK_OK(shard_dataset_open(&two[1], part_folder[4].text, NULL, &fixture_err));
	CHECK_OK(shard_dataset_concat(&out, two, 2, &fixture_err));
	refused(shard_loader_open(&l, out, &o, &fixture_err), SHARD_E_MISMATCH, "field 'image' is tensor u8 [20,20,3]");
	refused(shard_dataset_read(out, &idx, 1, dst, &fixture_err), SHARD_E_MISMATCH, "field 'image' is tensor u8");
	refused(shard_dataset_column(out, &shard_dataset_schema(out)->field[PHOTO_IMAGE], 45, 5, got, &fixture_err),
		SHARD_E_UNSUPPORTED, "field 'image' is another one in");
	o.fields = 1u << PHOTO_LABEL | 1u << PHOTO_WEIGHT; /* they are alike */
	CHECK_OK(shard_loader_open(&l, out, &o, &fixture_err));
	shard_loader_close(l);
	o.gpu.pool_bytes = 1 << 20;
	refused(shard_loader_open(&l, out, &o, &fixture_err), SHARD_E_UNSUPPORTED,
		"store their records in different ways");
	shard_dataset_close(out);
	shard_dataset_close(two[1]);
	drop_joined();
	drop_dataset();
}

TEST_MAIN()
