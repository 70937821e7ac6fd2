/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_tally.c - statistics in a shard are those of a plain sum, however they were counted; what is not
 * finite is recorded
 */
#include <math.h>

#include "shard_pack.h"
#include "tests/store/fixture.h"

#define RECORDS		37u
#define CLASSES		5u
#define WORKERS		3u
#define PROVENANCE_MOST (1u << 20)
#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

enum { MIXED, LABEL, PLANES, MASK, WIDE };

static struct shard_schema schema;
static uint8_t record[RECORDS][2][1024]; /* of groups 0 and 1 */
static const void *group[RECORDS][2];

static void begin(void)
{
	struct prng p = {5};

	schema = (struct shard_schema){
		.group_count = 2,
		.field_count = 5,
		.field = {{.name = "mixed",
			   .dtype = SHARD_U8,
			   .layout = SHARD_HWC,
			   .semantic = SHARD_IMAGE,
			   .ndim = 3,
			   .shape = {5, 7, 3}},
			  {.name = "label", .dtype = SHARD_I64, .semantic = SHARD_LABEL, .group = 1},
			  {.name = "planes",
			   .dtype = SHARD_U8,
			   .layout = SHARD_CHW,
			   .semantic = SHARD_IMAGE,
			   .group = 1,
			   .ndim = 3,
			   .shape = {4, 3, 11}},
			  {.name = "mask",
			   .dtype = SHARD_U8,
			   .layout = SHARD_HWC,
			   .semantic = SHARD_MASK,
			   .ndim = 3,
			   .shape = {5, 7, 1}},
			  {.name = "wide",
			   .dtype = SHARD_U8,
			   .layout = SHARD_HWC,
			   .semantic = SHARD_IMAGE,
			   .ndim = 3,
			   .shape = {2, 2, 5}}},
	};
	CHECK_OK(shard_schema_lay_out(&schema, 0, &fixture_err));
	for (uint32_t i = 0; i < RECORDS; i++)
		for (uint32_t g = 0; g < 2; g++) {
			memset(record[i][g], 0, sizeof(record[i][g]));
			for (uint32_t f = 0; f < schema.field_count; f++)
				if (schema.field[f].group == g)
					prng_fill(&p, record[i][g] + schema.field[f].offset,
						  (size_t)schema.field[f].bytes);
			group[i][g] = record[i][g];
		}
	for (uint32_t i = 0; i < RECORDS; i++) {
		int64_t label = i * i % 4; /* class 4 has none */

		memcpy(record[i][1] + schema.field[LABEL].offset, &label, sizeof(label));
	}
}

static struct shard_tally *new_tally(void)
{
	struct shard_tally *t = NULL;

	CHECK_OK(shard_tally_open(&t, &schema, &fixture_err));
	return t;
}

/* A shard of the records [first, end), with these statistics; what finishing it returns. */
static int write_shard(const char *path, const struct shard_tally *t, uint64_t class_count, uint32_t first,
		       uint32_t end, struct shard_error *err)
{
	struct shard_writer_options o = {
		.size = sizeof(o), .planned_records = RECORDS, .skip_read_back = 1, .class_count = class_count};
	struct shard_writer *w = NULL;
	int rc;

	CHECK_OK(shard_writer_open(&w, path, &schema, &o, &fixture_err));
	for (uint32_t i = first; i < end; i++)
		CHECK_OK(shard_writer_append(w, group[i], NULL, 0, &fixture_err));
	rc = shard_tally_write(t, w, err);
	if (!rc)
		rc = shard_writer_finish(w, NULL, err);
	shard_writer_close(w);
	return rc;
}

static struct shard_moments plain_sum(uint32_t field, uint32_t channel, uint32_t channels, uint32_t first, uint32_t end)
{
	const struct shard_field *f = &schema.field[field];
	struct shard_moments m = {0, 0, 0, 0};

	for (uint32_t i = first; i < end; i++)
		for (uint64_t k = 0; k < f->bytes; k++) {
			uint64_t v = record[i][f->group][f->offset + k];

			if ((f->layout == SHARD_HWC ? k % channels : k / (f->bytes / channels)) != channel)
				continue;
			m.count++;
			m.sum += v;
			m.sum_squares_low += v * v;
		}
	return m;
}

static void check_statistics(const char *path, bool classes, uint32_t first, uint32_t end)
{
	static const uint32_t channels[] = {[MIXED] = 3, [LABEL] = 0, [PLANES] = 4, [MASK] = 0, [WIDE] = 0};
	struct shard_reader *r = NULL;
	struct shard_moments got, want;
	uint64_t records, n;

	CHECK_OK(shard_reader_open(&r, path, NULL, &fixture_err));
	for (uint32_t f = 0; f < schema.field_count; f++) {
		for (uint32_t c = 0; c < channels[f]; c++) {
			want = plain_sum(f, c, channels[f], first, end);
			CHECK_OK(shard_reader_moments(r, f, c, &got, &fixture_err));
			CHECK_MEM(&got, &want, sizeof(got));
		}
		CHECK_EQ(shard_reader_moments(r, f, channels[f], &got, &fixture_err), SHARD_END);
	}
	for (uint64_t c = 0; classes && c < CLASSES; c++) {
		n = 0;
		for (uint32_t i = first; i < end; i++)
			n += i * i % 4 == c;
		CHECK_OK(shard_reader_class_records(r, LABEL, c, &records, &fixture_err));
		CHECK_EQ(records, n);
	}
	CHECK_EQ(shard_reader_class_records(r, LABEL, classes ? CLASSES : 0, &records, &fixture_err), SHARD_END);
	shard_reader_close(r);
	unlink(path);
}

TEST(records_are_counted_one_by_one)
{
	struct shard_tally *t;
	struct path p;

	begin();
	t = new_tally();
	tmp(&p, "t_tally.%d.shard", (int)getpid());
	for (uint32_t i = 0; i < RECORDS; i++)
		shard_tally_add(t, group[i]);
	CHECK_OK(write_shard(p.text, t, CLASSES, 0, RECORDS, &fixture_err));
	check_statistics(p.text, true, 0, RECORDS);
	shard_tally_close(t);
}

/* As packers with threads do: each has a tally. */
TEST(parts_are_moved_into_one)
{
	struct shard_tally *whole, *part[WORKERS];
	struct path p;

	begin();
	whole = new_tally();
	tmp(&p, "t_tally.%d.shard", (int)getpid());
	for (uint32_t w = 0; w < WORKERS; w++)
		part[w] = new_tally();
	for (uint32_t i = 0; i < RECORDS; i++) {
		shard_tally_add(i < 9 ? whole : part[i % WORKERS], group[i]);
		if (i % 5 == 0) /* a part that was moved is at zero, so nothing is counted twice */
			shard_tally_move(whole, part[i % WORKERS]);
	}
	for (uint32_t w = 0; w < WORKERS; w++)
		shard_tally_move(whole, part[w]);
	CHECK_OK(write_shard(p.text, whole, CLASSES, 0, RECORDS, &fixture_err));
	check_statistics(p.text, true, 0, RECORDS);
	for (uint32_t w = 0; w < WORKERS; w++)
		shard_tally_close(part[w]);
	shard_tally_close(whole);
}

TEST(a_tally_serves_one_shard_after_the_other)
{
	static const uint32_t end[] = {0, 7, 8, RECORDS};
	struct shard_tally *t;
	struct path p;

	begin();
	t = new_tally();
	tmp(&p, "t_tally.%d.shard", (int)getpid());
	for (size_t k = 1; k < COUNT(end); k++) {
		shard_tally_move(NULL, t);
		for (uint32_t i = end[k - 1]; i < end[k]; i++)
			shard_tally_add(t, group[i]);
		CHECK_OK(write_shard(p.text, t, CLASSES, end[k - 1], end[k], &fixture_err));
		check_statistics(p.text, true, end[k - 1], end[k]);
	}
	shard_tally_close(t);
}

TEST(without_classes_none_are_counted)
{
	struct shard_tally *t;
	struct path p;

	begin();
	tmp(&p, "t_tally.%d.shard", (int)getpid());
	for (int i = 0; i < 2; i++) {
		STORY(i ? "classes, but no label" : "a label, but no classes");
		schema.field[LABEL].semantic = i ? SHARD_SEMANTIC_NONE : SHARD_LABEL;
		t = new_tally();
		for (uint32_t r = 0; r < RECORDS; r++)
			shard_tally_add(t, group[r]);
		CHECK_OK(write_shard(p.text, t, i ? CLASSES : 0, 0, RECORDS, &fixture_err));
		check_statistics(p.text, false, 0, RECORDS);
		shard_tally_close(t);
	}
}

/* Two fields of floats and one of whole numbers. */
static void write_floats(const char *path, const char *provenance, bool odd, int want, struct shard_error *err)
{
	static const float usual[] = {1, -2, 0}, odd_ones[] = {NAN, -INFINITY, NAN};
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = 2, .provenance = provenance};
	struct shard_schema s = {
		.group_count = 1,
		.field_count = 3,
		.field = {{.name = "a", .dtype = SHARD_F32, .ndim = 1, .shape = {3}},
			  {.name = "b", .dtype = SHARD_F64},
			  {.name = "c", .dtype = SHARD_I64}},
	};
	double b = odd ? INFINITY : 5;
	struct shard_writer *w = NULL;
	struct shard_tally *t = NULL;
	uint8_t bytes[64] = {0};
	const void *groups[] = {bytes};
	int rc = 0;

	CHECK_OK(shard_schema_lay_out(&s, 0, &fixture_err));
	CHECK_OK(shard_tally_open(&t, &s, &fixture_err));
	CHECK_OK(shard_writer_open(&w, path, &s, &o, &fixture_err));
	memcpy(bytes + s.field[0].offset, odd ? odd_ones : usual, sizeof(usual));
	for (int i = 0; i < 2; i++) {
		memcpy(bytes + s.field[1].offset, &b, sizeof(b));
		CHECK_OK(shard_writer_append(w, groups, NULL, 0, &fixture_err));
		shard_tally_add(t, groups);
		b = 7;
	}
	rc = shard_tally_write(t, w, err);
	if (!rc)
		rc = shard_writer_finish(w, NULL, err);
	CHECK_EQ(rc, want);
	if (!rc) /* it would be lost */
		CHECK_EQ(shard_tally_write(t, w, err), SHARD_E_ARGUMENT);
	shard_writer_close(w);
	shard_tally_close(t);
}

#define LINES "not-finite a nan 4 infinite 2\nnot-finite b nan 0 infinite 1\n"

TEST(values_that_are_not_finite_are_in_the_provenance)
{
	static const struct {
		const char *story, *provenance;
		bool odd;
		const char *want;
	} rows[] = {
		{"all are finite: the text is as it was", "mine", false, "mine"},
		{"all are finite, and there is no text", NULL, false, ""},
		{"lines go behind a text that ends a line", "mine\n", true, "mine\n" LINES},
		{"they begin a line of their own", "mine", true, "mine\n" LINES},
		{"they are all that there is", NULL, true, LINES},
		{"the same for a text without a byte", "", true, LINES},
	};
	char *text = malloc(PROVENANCE_MOST + 1);
	struct shard_error err = {0};
	struct shard_reader *r;
	struct shard_view v;
	struct path p;

	tmp(&p, "t_tally.%d.shard", (int)getpid());
	for (size_t i = 0; i < COUNT(rows); i++) {
		STORY("%s", rows[i].story);
		write_floats(p.text, rows[i].provenance, rows[i].odd, SHARD_OK, &err);
		CHECK_OK(shard_reader_open(&r, p.text, NULL, &fixture_err));
		CHECK_OK(shard_reader_provenance(r, &v, &fixture_err));
		CHECK_EQ(v.bytes, strlen(rows[i].want));
		CHECK_MEM(v.data, rows[i].want, v.bytes);
		shard_reader_close(r);
		unlink(p.text);
	}
	memset(text, 'x', PROVENANCE_MOST);
	text[PROVENANCE_MOST] = '\0';
	for (uint32_t over = 0; over < 2; over++) {
		STORY("%u bytes too many", over);
		text[PROVENANCE_MOST - sizeof(LINES) + over] = '\0';
		write_floats(p.text, text, true, over ? SHARD_E_ARGUMENT : SHARD_OK, &err);
		unlink(p.text);
		text[PROVENANCE_MOST - sizeof(LINES) + over] = 'x';
	}
	CHECK(strstr(err.message,
		     ": the provenance and its lines of NaN and infinite values have 1048577 bytes; must be at "
		     "most 1048576; give a shorter provenance"));
	STORY("a text of the greatest size, and nothing behind it");
	write_floats(p.text, text, false, SHARD_OK, &err);
	unlink(p.text);
	free(text);
}

TEST_MAIN()
