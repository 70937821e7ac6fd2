/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_seal.c - shards become a dataset: sums, names, what is refused, and that the result always
 * opens and verifies
 */
#include "shard_pack.h"
#include "tests/store/fixture.h"

static struct path folder;
static struct shard_schema schema;

static const char *in_folder(struct path *p, const char *name)
{
	return tmp(p, "t_seal.%d/%s", (int)getpid(), name);
}

static void begin(void)
{
	schema = photo_schema(8, SHARD_RAW);
	new_folder(&folder, "t_seal");
}

/* What a small shard of labels says of its classes. */
struct labels {
	const char *file;
	uint64_t records;
	uint32_t class_count;	      /* 0: no counts */
	uint64_t per_class[130];      /* adds up to records */
	struct shard_moments moments; /* of a u8 field, count 0: none */
};

static struct shard_schema label_schema(void)
{
	struct shard_schema s = {.group_count = 1,
				 .field_count = 2,
				 .field = {{.name = "label", .dtype = SHARD_I64, .semantic = SHARD_LABEL},
					   {.name = "image", .dtype = SHARD_U8, .ndim = 1, .shape = {1}}}};

	CHECK_OK(shard_schema_lay_out(&s, 0, &fixture_err));
	return s;
}

static void write_labels(const struct labels *l)
{
	struct shard_schema s = label_schema();
	struct shard_writer_options o = {.size = sizeof(o),
					 .planned_records = l->records + 1,
					 .skip_read_back = 1,
					 .class_count = l->class_count};
	struct shard_written written;
	uint64_t of_class = 0, class_idx = 0;
	struct shard_writer *w;
	struct path p;

	CHECK_OK(shard_writer_open(&w, in_folder(&p, l->file), &s, &o, &fixture_err));
	for (uint64_t i = 0; i < l->records; i++) {
		uint8_t record[16] = {0};
		const void *group[1] = {record};

		for (; l->class_count && of_class == l->per_class[class_idx]; of_class = 0)
			class_idx++;
		of_class++;
		memcpy(record + s.field[0].offset, &class_idx, sizeof(class_idx));
		CHECK_OK(shard_writer_append(w, group, NULL, 0, &fixture_err));
	}
	if (l->moments.count)
		CHECK_OK(writer_add_moments(w, 1, 0, &l->moments, &fixture_err));
	CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
	shard_writer_close(w);
}

/* Seal these files and open the result, which must be without fault. */
static struct shard_dataset *seal(const struct labels *l, size_t count, const struct shard_seal_options *o)
{
	struct shard_verify_options all = {.size = sizeof(all), .thread_count = 1, .sha256 = 1};
	struct shard_dataset *ds;
	struct shard_seal *s;

	CHECK_OK(shard_seal_open(&s, folder.text, o, &fixture_err));
	for (size_t i = 0; i < count; i++) {
		write_labels(&l[i]);
		CHECK_OK(shard_seal_add(s, l[i].file, NULL, NULL, &fixture_err));
	}
	CHECK_OK(shard_seal_finish(s, &fixture_err));
	shard_seal_close(s);
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	CHECK_OK(shard_dataset_verify(ds, &all, NULL, &fixture_err));
	return ds;
}

/* ---- sums ---- */

static const struct {
	const char *story;
	struct labels shard[3];
	size_t shards;
	uint64_t want[130];
	uint64_t classes; /* 0: the manifest states none */
} sums[] = {
	{"two shards", {{"0", 3, 2, {1, 2}, {0}}, {"1", 4, 2, {4, 0}, {0}}}, 2, {5, 2}, 2},
	{"classes without records stay", {{"0", 3, 4, {3, 0, 0, 0}, {0}}}, 1, {3, 0, 0, 0}, 4},
	{"the longer list counts",
	 {{"0", 1, 1, {1}, {0}}, {"1", 1, 5, {0, 0, 1, 0, 0}, {0}}, {"2", 1, 2, {0, 1}, {0}}},
	 3,
	 {1, 1, 1, 0, 0},
	 5},
	{"one shard has no counts", {{"0", 3, 2, {1, 2}, {0}}, {"1", 4, 0, {0}, {0}}}, 2, {0}, 0},
	{"the first shard has no counts", {{"0", 4, 0, {0}, {0}}, {"1", 3, 2, {1, 2}, {0}}}, 2, {0}, 0},
	{"an empty shard needs none",
	 {{"0", 0, 0, {0}, {0}}, {"1", 3, 2, {1, 2}, {0}}, {"2", 0, 0, {0}, {0}}},
	 3,
	 {1, 2},
	 2},
	{"only empty shards", {{"0", 0, 0, {0}, {0}}}, 1, {0}, 0},
	{"130 classes", {{"0", 2, 130, {[7] = 1, [129] = 1}, {0}}}, 1, {[7] = 1, [129] = 1}, 130},
};

TEST(class_counts_are_added_up)
{
	for (size_t i = 0; i < COUNT(sums); i++)
		for (uint64_t names = 0; names < 3; names++) { /* none, fewer and more than there are counts */
			static char digits[200][16];
			const char *all[200];
			struct shard_seal_options o = {
				.size = sizeof(o), .class_names = all, .class_count = names * names * 40};
			struct shard_dataset *ds;
			uint64_t got;

			STORY("%s, %" PRIu64 " names", sums[i].story, o.class_count);
			for (int k = 0; k < 200; k++) {
				snprintf(digits[k], sizeof(digits[k]), "c%d", k);
				all[k] = digits[k];
			}
			begin();
			ds = seal(sums[i].shard, sums[i].shards, &o);
			for (uint64_t c = 0; c < sums[i].classes; c++) {
				CHECK_OK(shard_dataset_class_records(ds, 0, c, &got, &fixture_err));
				CHECK_EQ(got, sums[i].want[c]);
			}
			CHECK_EQ(shard_dataset_class_records(ds, 0, sums[i].classes, &got, NULL), SHARD_END);
			shard_dataset_close(ds);
		}
}

TEST(moments_are_added_up)
{
	static const struct {
		const char *story;
		struct labels shard[3];
		size_t shards;
		bool there;
		struct shard_moments want;
	} rows[] = {
		{"three shards",
		 {{"0", 1, 0, {0}, {1, 255, 65025, 0}}, {"1", 2, 0, {0}, {2, 3, 5, 0}}, {"2", 1, 0, {0}, {1, 0, 0, 0}}},
		 3,
		 true,
		 {4, 258, 65030, 0}},
		{"one has none", {{"0", 1, 0, {0}, {1, 255, 65025, 0}}, {"1", 2, 0, {0}, {0}}}, 2, false, {0, 0, 0, 0}},
		{"the first has none", {{"0", 1, 0, {0}, {0}}, {"1", 2, 0, {0}, {2, 0, 0, 0}}}, 2, false, {0, 0, 0, 0}},
		{"an empty one needs none",
		 {{"0", 1, 0, {0}, {1, 255, 65025, 0}}, {"1", 0, 0, {0}, {0}}},
		 2,
		 true,
		 {1, 255, 65025, 0}},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_moments got;
		struct shard_dataset *ds;

		STORY("%s", rows[i].story);
		begin();
		ds = seal(rows[i].shard, rows[i].shards, NULL);
		CHECK_EQ(shard_dataset_moments(ds, 1, 0, &got, NULL), rows[i].there ? SHARD_OK : SHARD_END);
		CHECK(!rows[i].there || !memcmp(&got, &rows[i].want, sizeof(got)));
		shard_dataset_close(ds);
	}
}

/* ---- what the options say ---- */

TEST(order_seed_and_plan)
{
	static const struct labels one = {"0", 1, 0, {0}, {0}};
	uint8_t *plan = malloc(32);
	struct shard_dataset_info info;

	memset(plan, 0xab, 32);
	for (uint32_t order = 0; order <= SHARD_ORDER_SHUFFLE; order++) {
		struct shard_seal_options o = {
			.size = sizeof(o), .order = order, .seed = UINT64_MAX, .plan_digest = order ? plan : NULL};
		struct shard_dataset *ds;

		begin();
		ds = seal(&one, 1, &o);
		shard_dataset_info(ds, &info);
		CHECK_EQ(info.order, order);
		CHECK_EQ(info.seed, order == SHARD_ORDER_SHUFFLE ? UINT64_MAX : 0);
		CHECK_EQ(info.has_plan_digest, order != 0);
		CHECK_EQ(info.plan_digest[31], order ? 0xab : 0);
		shard_dataset_close(ds);
	}
	free(plan);
}

/* The caller's option struct and what it points to are needed by open only. */
TEST(options_may_go_away_after_open)
{
	static const struct labels one = {"0", 1, 0, {0}, {0}};
	struct shard_seal_options o = {.size = sizeof(o), .class_count = 2};
	struct shard_dataset_info info;
	struct shard_dataset *ds;
	struct shard_seal *s;
	char **names = malloc(2 * sizeof(*names));
	uint8_t *plan = malloc(32);

	begin();
	memset(plan, 0xcd, 32);
	names[0] = strdup("first");
	names[1] = strdup("second");
	o.class_names = (const char *const *)names;
	o.plan_digest = plan;
	CHECK_OK(shard_seal_open(&s, folder.text, &o, &fixture_err));
	memset(plan, 0, 32);
	free(plan);
	free(names[0]);
	free(names[1]);
	free(names);
	write_labels(&one);
	CHECK_OK(shard_seal_add(s, "0", NULL, NULL, &fixture_err));
	CHECK_OK(shard_seal_finish(s, &fixture_err));
	shard_seal_close(s);
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	shard_dataset_info(ds, &info);
	CHECK_EQ(info.plan_digest[0], 0xcd);
	CHECK_STR(shard_dataset_class_name(ds, 1), "second");
	shard_dataset_close(ds);
}

TEST(class_names_of_every_kind)
{
	static const char *const good[] = {"a",	       " ", "%",      "%41",	      "A",
					   "..",       "/", "a b/c%", "zw\xc3\xb6lf", "\xf0\x9f\x90\x8d",
					   "\n\t\x01", "~", "-",      "\x7f"};
	static const struct {
		const char *story, *name, *says;
	} bad[] = {{"empty", "", "class 0: its name '' must be UTF-8 of 1 to 1024 bytes"},
		   {"not UTF-8", "a\xff", "class 0: its name 'a\\xff'"},
		   {"surrogate", "\xed\xa0\x80", "must be UTF-8"},
		   {"too long", NULL, "must be UTF-8 of 1 to 1024 bytes"}};
	static const struct labels one = {"0", 1, 0, {0}, {0}};
	struct shard_seal_options o = {.size = sizeof(o), .class_names = good, .class_count = COUNT(good)};
	struct shard_dataset *ds;
	char longest[1026];

	begin();
	ds = seal(&one, 1, &o);
	for (size_t i = 0; i < COUNT(good); i++)
		CHECK_STR(shard_dataset_class_name(ds, i), good[i]);
	CHECK(!shard_dataset_class_name(ds, COUNT(good)));
	shard_dataset_close(ds);

	memset(longest, '/', sizeof(longest)); /* each becomes three */
	longest[1025] = 0;
	o.class_count = 1;
	for (size_t i = 0; i < COUNT(bad); i++) {
		const char *names[1] = {bad[i].name ? bad[i].name : longest};
		struct shard_error err = {.message = ""};
		struct shard_seal *s = NULL;

		STORY("%s", bad[i].story);
		o.class_names = names;
		CHECK_EQ(shard_seal_open(&s, folder.text, &o, &err), SHARD_E_ARGUMENT);
		if (!strstr(err.message, bad[i].says))
			CHECK_STR(err.message, bad[i].says);
		CHECK(!s);
	}
	longest[1024] = 0;
	begin();
	o.class_names = (const char *[]){longest};
	ds = seal(&one, 1, &o);
	CHECK_STR(shard_dataset_class_name(ds, 0), longest);
	shard_dataset_close(ds);
}

TEST(options_that_are_refused)
{
	static const char *const twice[] = {"a", "b", "a"};
	static const struct {
		const char *story;
		struct shard_seal_options o;
		const char *says;
	} rows[] = {
		{"order 3", {.size = sizeof(rows[0].o), .order = 3}, "order is 3"},
		{"replace 2", {.size = sizeof(rows[0].o), .replace = 2}, "replace 2"},
		{"size not set", {.size = 0}, "size"},
		{"classes without names",
		 {.size = sizeof(rows[0].o), .class_count = 3},
		 "class_count is 3, but class_names is NULL"},
		{"more than 2^24 classes",
		 {.size = sizeof(rows[0].o), .class_count = (1u << 24) + 1, .class_names = twice},
		 "class_count is 16777217; must be at most 16777216"},
		{"a class twice",
		 {.size = sizeof(rows[0].o), .class_count = 3, .class_names = twice},
		 "two classes are named 'a'"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_error err = {.message = ""};
		struct shard_seal *s = NULL;

		STORY("%s", rows[i].story);
		CHECK_EQ(shard_seal_open(&s, folder.text, &rows[i].o, &err), SHARD_E_ARGUMENT);
		if (!strstr(err.message, rows[i].says))
			CHECK_STR(err.message, rows[i].says);
		CHECK(!s);
	}
}

TEST(a_url_is_no_folder)
{
	static const char *const urls[] = {"s3://bucket/ds", "gs://b", "hf://datasets/a/b", "HTTPS://h/d",
					   "a+b-c.1://x"};
	static const char *const paths[] = {"./s3://bucket/ds", "s3:/bucket", "C://x",	"://x",
					    "1s://x",		"a/s3://x",   "s 3://x"};
	struct shard_seal_options o = {.size = sizeof(o)};
	struct shard_error err;
	struct shard_seal *s;

	for (size_t i = 0; i < COUNT(urls); i++) {
		STORY("%s", urls[i]);
		CHECK_EQ(shard_seal_open(&s, urls[i], &o, &err), SHARD_E_ARGUMENT);
		CHECK(strstr(err.message, urls[i]) && strstr(err.message, "is a URL"));
	}
	for (size_t i = 0; i < COUNT(paths); i++) {
		STORY("%s", paths[i]);
		CHECK_OK(shard_seal_open(&s, paths[i], &o, &err)); /* nothing is there yet that it would look at */
		shard_seal_close(s);
	}
}

/* ---- shards that are refused ---- */

TEST(shards_that_are_refused)
{
	struct labels one = {"0", 1, 0, {0}, {0}};
	struct shard_error err;
	struct shard_seal *s;
	struct path p;

	begin();
	write_labels(&one);
	write_photos(in_folder(&p, "photo"), &schema, 0, 3, NULL);
	file_make(in_folder(&p, "rubbish"), "rubbish", 7);
	CHECK_OK(shard_seal_open(&s, folder.text, NULL, &fixture_err));
	CHECK_EQ(shard_seal_finish(s, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "no shard was added"));
	CHECK_EQ(shard_seal_add(s, "../0", NULL, NULL, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "'../0' must be one or two parts"));
	CHECK_EQ(shard_seal_add(s, ".0", NULL, NULL, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_seal_add(s, "none", NULL, NULL, &err), SHARD_E_IO);
	CHECK_EQ(err.os_code, 2);
	CHECK_EQ(shard_seal_add(s, "rubbish", NULL, NULL, &err), SHARD_E_CORRUPT);
	CHECK(strstr(err.message, "rubbish: I1"));
	CHECK_OK(shard_seal_add(s, "0", NULL, NULL, &fixture_err));
	CHECK_EQ(shard_seal_add(s, "photo", NULL, NULL, &err), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, "photo: its groups and fields are not those of the shards before it"));
	CHECK_OK(shard_seal_add(s, "0", NULL, NULL, &fixture_err)); /* noticed at the end, when all names are known */
	CHECK_EQ(shard_seal_finish(s, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "two shards have the file name '0'"));
	CHECK(!file_there(in_folder(&p, "dataset.manifest")));
	shard_seal_close(s);
	shard_seal_close(NULL);
}

/* A reader that is there already: the same manifest, whoever made it, and no other file. */
TEST(a_reader_is_added)
{
	/* of few classes, and of so many that their counts are read when they are needed */
	static const uint32_t class_counts[] = {3, 5000};
	static const char *const how[] = {"no reader", "of its pages", "of all of it"};
	struct shard_seal_options o = {.size = sizeof(o), .replace = 1};
	struct shard_error err;
	struct path p, q;
	uint8_t *manifest[3];
	size_t bytes[3];

	for (size_t i = 0; i < 2 * COUNT(how); i++) {
		size_t k = i % COUNT(how);
		struct labels one = {"0", 1, class_counts[i / COUNT(how)], {1}, {0}},
			      two = {"1", 2, class_counts[i / COUNT(how)], {0, 1, 1}, {0}};
		struct shard_reader_options ro = {.size = sizeof(ro), .pages_only = k == 1};
		struct shard_reader *r = NULL;
		struct shard_seal *s;

		STORY("%s, %u classes", how[k], one.class_count);
		begin();
		write_labels(&one);
		write_labels(&two);
		if (k)
			CHECK_OK(shard_reader_open(&r, in_folder(&q, "1"), &ro, &fixture_err));
		CHECK_OK(shard_seal_open(&s, folder.text, &o, &fixture_err));
		CHECK_OK(shard_seal_add(s, "0", NULL, NULL, &fixture_err));
		CHECK_EQ(shard_seal_add(s, "../1", r, NULL, &err), SHARD_E_ARGUMENT);
		if (k) {
			CHECK_EQ(shard_seal_add(s, "0", r, NULL, &err), SHARD_E_ARGUMENT);
			CHECK(strstr(err.message, "/1: is not the file that is added"));
		}
		CHECK_OK(shard_seal_add(s, "1", r, NULL, &fixture_err));
		CHECK_OK(shard_seal_finish(s, &fixture_err));
		shard_seal_close(s);
		shard_reader_close(r);
		manifest[k] = file_bytes(in_folder(&p, "dataset.manifest"), &bytes[k]);
		CHECK(memmem(manifest[k], bytes[k], "\nstat classes 0 2 1\n", 20));
		if (k < 2)
			continue;
		for (int m = 0; m < 2; m++) {
			CHECK_EQ(bytes[m], bytes[2]);
			CHECK_MEM(manifest[m], manifest[2], bytes[2]);
			free(manifest[m]);
		}
		free(manifest[2]);
	}
}

/* Statistics with the right hash that cannot be true would make a manifest that nobody can open. */
TEST(statistics_that_cannot_be_true_are_refused)
{
	struct shard_error err = {.message = ""};
	struct shard_seal *s;
	struct path p;

	begin();
	file_copy("format/bad/I54_class_sum.shard", in_folder(&p, "0.shard"));
	CHECK_OK(shard_seal_open(&s, folder.text, NULL, &fixture_err));
	CHECK_EQ(shard_seal_add(s, "0.shard", NULL, NULL, &err), SHARD_E_CORRUPT);
	CHECK(strstr(err.message, "0.shard: I54: "));
	shard_seal_close(s);
}

/* ---- the name ---- */

TEST(a_manifest_is_replaced_on_request_only)
{
	struct labels one = {"0", 1, 0, {0}, {0}};
	struct shard_seal_options o = {.size = sizeof(o)};
	struct shard_error err = {.message = ""};
	uint8_t *before, *after;
	size_t bytes, after_bytes;
	struct shard_dataset *ds;
	struct shard_seal *s;
	struct path p;

	begin();
	shard_dataset_close(seal(&one, 1, &o));
	before = file_bytes(in_folder(&p, "dataset.manifest"), &bytes);
	for (o.replace = 0; o.replace < 2; o.replace++) {
		o.seed = 5;
		o.order = SHARD_ORDER_SHUFFLE;
		CHECK_OK(shard_seal_open(&s, folder.text, &o, &fixture_err));
		CHECK_OK(shard_seal_add(s, "0", NULL, NULL, &fixture_err));
		CHECK_EQ(shard_seal_finish(s, &err), o.replace ? SHARD_OK : SHARD_E_EXISTS);
		CHECK(strstr(err.message, "dataset.manifest: already exists"));
		shard_seal_close(s);
		after = file_bytes(in_folder(&p, "dataset.manifest"), &after_bytes);
		CHECK_EQ(after_bytes == bytes && !memcmp(before, after, bytes), !o.replace);
		free(after);
		CHECK_EQ(entries(folder.text, ".tmp."), 0);
	}
	free(before);
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	shard_dataset_close(ds);
}

TEST(the_same_shards_make_the_same_manifest)
{
	const uint64_t sizes[] = {5, 0, 9};
	uint8_t *a, *b;
	size_t a_bytes, b_bytes;
	struct path p;

	for (int given = 0; given < 2; given++) { /* the SHA-256 from the writer, or from the file */
		struct shard_seal *s;

		begin();
		write_dataset(folder.text, &schema, sizes, COUNT(sizes));
		a = file_bytes(in_folder(&p, "dataset.manifest"), &a_bytes);
		if (given) {
			struct shard_seal_options o = {
				.size = sizeof(o), .order = SHARD_ORDER_SHUFFLE, .seed = 7, .replace = 1};
			const char *names[] = {"a", "b", "zw\xc3\xb6lf", "d d", "%", "f", "g", "h", "i", "j"};

			o.class_names = names;
			o.class_count = 10;
			CHECK_OK(shard_seal_open(&s, folder.text, &o, &fixture_err));
			CHECK_OK(shard_seal_add(s, "0.shard", NULL, NULL, &fixture_err));
			CHECK_OK(shard_seal_add(s, "1.shard", NULL, NULL, &fixture_err));
			CHECK_OK(shard_seal_add(s, "2.shard", NULL, NULL, &fixture_err));
			CHECK_OK(shard_seal_finish(s, &fixture_err));
			shard_seal_close(s);
		} else {
			/* shards are kept, the manifest is written again */
			write_dataset(folder.text, &schema, sizes, COUNT(sizes));
		}
		b = file_bytes(in_folder(&p, "dataset.manifest"), &b_bytes);
		CHECK_EQ(a_bytes, b_bytes);
		CHECK_MEM(a, b, a_bytes);
		free(a);
		free(b);
	}
	remove_tree(folder.text);
}

TEST_MAIN()
