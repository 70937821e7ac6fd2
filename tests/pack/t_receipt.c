/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_receipt.c - what became of inputs in two builds of a shard, as their receipts say; and the
 * files of receipts
 */
#include "tools/shardpack/make/make.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard_inspect.h"
#include "tests/test.h"

#define NONE UINT64_MAX

/* "3 v5 e6 a7": input 3 is damaged, 5 vanished, 6 is empty, 7 is damaged and accepted. */
static void fill(struct receipt *r, const char *inputs)
{
	for (char *end; *inputs; inputs = end + (*end == ' ')) {
		char kind = strchr("vea", *inputs) ? *inputs++ : '\0';
		struct problem p = {.ordinal = strtoull(inputs, &end, 10),
				    .reason = kind == 'v'   ? SHARD_MISS_VANISHED
					      : kind == 'e' ? SHARD_MISS_EMPTY
							    : SHARD_MISS_DAMAGED,
				    .how = kind == 'a' ? PROBLEM_ACCEPTED : PROBLEM_SKIPPED,
				    .message = "a message"};

		receipt_add(&r->lines, &p);
	}
	receipt_add(&r->lines, &(struct problem){99, SHARD_MISS_TRUNCATED, PROBLEM_ACCEPTED, "vanished"});
}

TEST(only_what_vanished_for_one_is_a_difference)
{
	static const struct {
		const char *story, *ours, *theirs;
		uint64_t want;
	} rows[] = {
		{"none did", "1 2", "2", NONE},
		{"one did, for this build", "1 v4", "1", 4},
		{"one did, for the other build", "1", "1 v4", NONE},
		{"the same did, so other bytes have another cause", "v4 5", "v4 6", NONE},
		{"the same did, and a later one", "v4 v7", "v4", 7},
		{"the same did, and an earlier one", "v2 v4", "v4 v9", 2},
		{"what is damaged here vanished there", "4", "v4", NONE},
		{"what is damaged there vanished here", "v4", "4", 4},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct receipt ours = {0}, theirs = {0};
		uint64_t ordinal = NONE;

		STORY("%s", rows[i].story);
		fill(&ours, rows[i].ours);
		fill(&theirs, rows[i].theirs);
		CHECK_EQ(receipt_vanished(&ours, &theirs, &ordinal), rows[i].want != NONE);
		if (rows[i].want != NONE)
			CHECK_EQ(ordinal, rows[i].want);
		receipt_free(&ours);
		receipt_free(&theirs);
	}
}

TEST(all_but_what_vanished_must_agree)
{
	static const struct {
		const char *story, *ours, *theirs;
		bool want;
	} rows[] = {
		{"nothing is bad", "", "", true},
		{"one vanished, for this build", "1 v4", "1", true},
		{"one vanished, for the other build", "1", "1 v4", true},
		{"another one is damaged for this build alone", "1 v4 6", "1", false},
		{"another one is damaged for the other build alone", "1 v4", "1 6", false},
		{"another one is bad for another reason", "v4 6", "e6", false},
		{"what is damaged here vanished there", "4", "v4", true},
		{"another one was accepted by this build alone", "v4 a6", "", false},
		{"what was accepted here vanished there", "a2 a6", "v2 a6", true},
		{"misses come first in a receipt that was made again", "a2 v4 6", "6 a2", true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct receipt ours = {0}, theirs = {0};

		STORY("%s", rows[i].story);
		fill(&ours, rows[i].ours);
		fill(&theirs, rows[i].theirs);
		CHECK_EQ(receipt_agrees(&ours, &theirs), rows[i].want);
		CHECK_EQ(receipt_agrees(&theirs, &ours), rows[i].want);
		receipt_free(&ours);
		receipt_free(&theirs);
	}
}

/* ---- where receipts are kept ---- */

static void make_folder(char *out, size_t room)
{
	snprintf(out, room, "%s/receipts.XXXXXX", getenv("TMPDIR"));
	CHECK(mkdtemp(out));
}

static struct receipt written(uint64_t records)
{
	return (struct receipt){.record_count = records, .mtime_ns = 1, .read_back = true};
}

static void begin_files(struct receipt_files *f, const char *dir)
{
	receipt_files_open(f);
	CHECK_EQ(receipt_files_read(f, dir), 0);
}

static void add(struct receipt_files *f, uint64_t shard_idx, uint64_t records)
{
	struct receipt r = written(records);
	struct shard_error err;

	CHECK_EQ(receipt_files_add(f, shard_idx, &r, &err), SHARD_OK);
}

/* As a process finds it that begins now. */
static bool find(const char *dir, uint64_t shard_idx, const struct receipt *is, struct receipt *r)
{
	struct receipt_texts t = {.count = 0};
	bool there;

	CHECK_EQ(receipt_texts_read(&t, dir), 0);
	there = receipt_find(&t, shard_idx, is, r, NULL);
	receipt_texts_free(&t);
	return there;
}

/* How many records the receipt of a shard speaks of, if that has `is`; NONE if there is none. */
static uint64_t found(const char *dir, uint64_t shard_idx, uint64_t is)
{
	struct receipt want = written(is), r = {0};
	uint64_t records = find(dir, shard_idx, &want, &r) ? r.record_count : NONE;

	receipt_free(&r);
	return records;
}

static bool has_file(const char *dir, unsigned number)
{
	char name[256];

	snprintf(name, sizeof(name), "%s/receipts-%05u", dir, number);
	return access(name, F_OK) == 0;
}

TEST(each_process_has_a_file_of_its_own)
{
	struct receipt_files one, two, late;
	char dir[200];

	make_folder(dir, sizeof(dir));
	begin_files(&one, dir);
	begin_files(&two, dir);
	for (uint64_t shard = 0; shard < 200; shard++)
		add(shard % 3 ? &one : &two, shard, shard + 1);
	for (uint64_t shard = 0; shard < 200; shard++)
		CHECK_EQ(found(dir, shard, shard + 1), shard + 1);
	CHECK_EQ(found(dir, 200, 1), NONE);
	CHECK_EQ(found(dir, 1000, 1), NONE);
	CHECK(has_file(dir, 0) && has_file(dir, 1) && !has_file(dir, 2));
	receipt_files_let_go(&one); /* another machine has removed it, or a write failed: then another one */
	add(&one, 300, 1);
	CHECK(has_file(dir, 2) && !has_file(dir, 3));
	begin_files(&late, dir); /* which has nothing to add */
	receipt_files_close(&late);
	CHECK(!has_file(dir, 3));
	receipt_files_close(&one);
	receipt_files_close(&two);
}

/* Built twice, of sources that were not the same: whichever came first or last, it is noticed. */
TEST(a_receipt_of_other_bytes_is_never_hidden)
{
	for (unsigned i = 0; i < 4; i++) {
		struct receipt_files one, two;
		char dir[200];

		make_folder(dir, sizeof(dir));
		begin_files(&one, dir);
		begin_files(&two, dir);
		add(&one, 70, i == 0 ? 8 : 7);
		add(&one, 70, i == 1 ? 8 : 7);
		add(&two, 70, i == 2 ? 8 : 7);
		CHECK_EQ(found(dir, 70, 7), i < 3 ? 8u : 7u);
		receipt_files_close(&one);
		receipt_files_close(&two);
	}
}

/* It is sound, and yet says nothing of the shard that was asked for. */
TEST(a_receipt_is_of_one_shard)
{
	struct receipt r = written(3), back = {0};
	struct text text = {0};

	for (uint64_t shard = 4; shard < 6; shard++) {
		receipt_write(&r, 4, &text);
		CHECK_EQ(receipt_parse(&back, shard, &text), shard == 4);
		receipt_free(&back);
		text_free(&text);
		text = (struct text){0};
	}
}

/* What a later process had to make again, which knows less, does not hide what the builder says. */
TEST(the_receipt_that_says_most_counts)
{
	struct receipt full = written(5), poor = full, back = {0};
	struct receipt_files one, two;
	struct shard_error err;
	char dir[200];

	make_folder(dir, sizeof(dir));
	begin_files(&one, dir);
	begin_files(&two, dir);
	add(&one, 0, 1);
	add(&two, 0, 1);
	poor.fit.unknown = 5;
	full.fit.images = 5;
	CHECK_EQ(receipt_files_add(&two, 1, &poor, &err), SHARD_OK);
	CHECK_EQ(receipt_files_add(&one, 1, &full, &err), SHARD_OK);
	CHECK(find(dir, 1, &full, &back) && back.fit.images == 5 && !back.fit.unknown);
	full.mtime_ns = 2; /* written again since: the newer one spares reading it */
	full.fit.images = 0;
	CHECK_EQ(receipt_files_add(&one, 1, &full, &err), SHARD_OK);
	CHECK(find(dir, 1, &full, &back) && back.mtime_ns == 2);
	receipt_free(&back);
	receipt_files_close(&one);
	receipt_files_close(&two);
}

TEST(a_receipt_keeps_what_is_counted_of_fields)
{
	struct receipt full = written(5), back = {0};
	struct fit_count sum = {.images = 0};
	struct receipt_files files;
	struct shard_error err;
	char dir[200];

	make_folder(dir, sizeof(dir));
	begin_files(&files, dir);
	full.fit.images = 5;
	full.fit.field[2] = (struct fit_field){.records = 5, .without = 2, .first = 17, .least = 1, .most = 9};
	full.fit.field[22] = (struct fit_field){.records = 5, .without = 5, .first = 3};
	CHECK_EQ(receipt_files_add(&files, 1, &full, &err), SHARD_OK);
	CHECK(find(dir, 1, &full, &back) && !memcmp(back.fit.field, full.fit.field, sizeof(full.fit.field)));
	/* and shards add up: the input that comes first in the source, a range of what is there */
	fit_count_add(&sum, &back.fit);
	back.fit.field[2] = (struct fit_field){.records = 4, .without = 1, .first = 4, .least = 3, .most = 12};
	fit_count_add(&sum, &back.fit);
	CHECK_EQ(sum.field[2].records, 9);
	CHECK_EQ(sum.field[2].without, 3);
	CHECK_EQ(sum.field[2].first, 4);
	CHECK_EQ(sum.field[2].least, 1);
	CHECK_EQ(sum.field[2].most, 12);
	CHECK_EQ(fit_count_with(&sum.field[22]), 0);
	receipt_free(&back);
	receipt_files_close(&files);
}

TEST(what_is_torn_does_not_count_and_hides_nothing)
{
	struct receipt_files one, two;
	char dir[200], name[256];
	struct stat st;
	off_t first;

	make_folder(dir, sizeof(dir));
	snprintf(name, sizeof(name), "%s/receipts-00000", dir);
	begin_files(&one, dir);
	add(&one, 3, 1);
	CHECK_EQ(stat(name, &st), 0);
	first = st.st_size;
	add(&one, 4, 1);
	CHECK_EQ(stat(name, &st), 0);
	begin_files(&two, dir);
	add(&two, 5, 1);
	for (off_t cut = st.st_size - 2; cut >= first; cut--) { /* without its last LF it is whole */
		CHECK_EQ(truncate(name, cut), 0);
		CHECK_EQ(found(dir, 3, 1), 1u);
		CHECK_EQ(found(dir, 4, 1), NONE);
		CHECK_EQ(found(dir, 5, 1), 1u);
	}
	receipt_files_close(&one);
	receipt_files_close(&two);
}

/* The digest is right, so some release wrote it; what it says of fields is not what this one reads. */
TEST(a_line_of_another_form_spoils_its_receipt_alone)
{
	static const char *const lines[] = {"fit 1 0 0 0 0\n",	    "fit 1 0 0 0 0 0 0\n", "field 0 1 2 0 0 0\n",
					    "field 99 1 0 0 0 0\n", "dropped 1\n",	   "not-finite 0:1\n"};
	struct receipt is = written(1), r = {0};

	for (size_t i = 0; i <= sizeof(lines) / sizeof(lines[0]); i++) {
		const char *line = i ? lines[i - 1] : "fit 1 0 0 0 0 0\n";
		struct text text = {0};

		STORY("%s", line);
		receipt_write(&is, 7, &text);
		CHECK(text_cut_end(&text));
		text_add(&text, line, strlen(line));
		text_add_end(&text);
		CHECK_EQ(receipt_parse(&r, 7, &text), i == 0);
		receipt_free(&r);
		text_free(&text);
	}
}

TEST_MAIN()
