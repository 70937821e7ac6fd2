/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_plan.c - a plan of fixed records: read back as it was written, and its order with and without a
 * table in memory
 */
#include "shard_pack.h"
#include "tests/pack/prng.h"
#include "tests/test.h"
#include "tools/common/message.h"
#include "tools/shardpack/plan/plan.h"

/* Records of 16 bytes in two files, and a label of one byte beside each. */
static void make_plan(struct plan *p, uint64_t first_count, uint64_t second_count)
{
	struct recipe r = {.source = SOURCE_RAW,
			   .order = SHARD_ORDER_SHUFFLE,
			   .seed = 7,
			   .shard_records = 1000,
			   .field_count = 2,
			   .field = {{.name = "x", .dtype = SHARD_U8, .ndim = 1, .shape = {16}},
				     {.name = "label", .dtype = SHARD_I64, .semantic = SHARD_LABEL}}};
	uint64_t count[2] = {first_count, second_count}, first = 0;
	struct classes none = {0};

	memset(p, 0, sizeof(*p));
	for (uint32_t i = 0; i < 2; i++) {
		struct plan_slice s = {
			.first = first, .count = count[i], .offset = 1, .stride = 17, .file = i, .dtype = SHARD_U8};

		CHECK_EQ(plan_add_file(p, 17 * count[i], i ? "b/b.raw" : "a%a.raw", PLAN_NO_FILE, NULL), EXIT_DONE);
		s.bytes = (count[i] - 1) * 17 + 16;
		CHECK_EQ(plan_add_slice(p, &s), EXIT_DONE);
		s.field = 1;
		s.offset = 0;
		s.bytes = (count[i] - 1) * 17 + 1;
		CHECK_EQ(plan_add_slice(p, &s), EXIT_DONE);
		first += count[i];
	}
	CHECK_EQ(plan_begin(p, &r, &none), EXIT_DONE);
	p->input_count = first;
	CHECK_EQ(plan_finish(p), EXIT_DONE);
}

TEST(what_was_written_reads_back)
{
	struct plan a, b;
	struct text text = {0};

	make_plan(&a, 300, 700);
	text_add(&text, a.text.data, a.text.bytes);
	CHECK_EQ(plan_parse(&b, &text, "a plan"), EXIT_DONE);
	CHECK_EQ(b.input_count, 1000);
	CHECK_EQ(b.source_bytes, 17000);
	CHECK_EQ(b.file_count, 2);
	CHECK_STR(b.file[0].path, "a%a.raw");
	CHECK_EQ(b.slice_count, 4);
	CHECK_MEM(b.digest, a.digest, 32);
	for (uint64_t i = 0; i < 4; i++) {
		const struct plan_slice *x = &a.slice[i], *y = &b.slice[i];

		STORY("slice %d", (int)i);
		CHECK(x->field == y->field && x->first == y->first && x->count == y->count && x->file == y->file &&
		      x->offset == y->offset && x->stride == y->stride && x->bytes == y->bytes &&
		      x->dtype == y->dtype && x->swap == y->swap);
	}
	CHECK_EQ(plan_find_slice(&b, 0, 299)->file, 0);
	CHECK_EQ(plan_find_slice(&b, 0, 300)->file, 1);
	CHECK_EQ(plan_find_slice(&b, 1, 999)->file, 1);
	plan_free(&a);
	plan_free(&b);
}

/* Slices of one length, of like lengths, and of which a few hold nearly all. */
static void check_slices(uint64_t longest, uint64_t one_in)
{
	enum { SLICES = 3000 };
	static struct plan_slice slices[SLICES];
	struct plan p = {.slice = slices, .slice_count = SLICES, .field_slice = {0, SLICES}};

	STORY("up to %d, one in %d", (int)longest, (int)one_in);
	for (uint64_t i = 0; i < SLICES; i++) {
		uint64_t count = prng_at(one_in, i) % one_in ? 1 : 1 + prng_at(longest, i) % longest;

		slices[i] = (struct plan_slice){.first = p.input_count, .count = count};
		p.input_count += count;
	}
	for (uint64_t i = 0; i < SLICES; i++) {
		CHECK(plan_find_slice(&p, 0, slices[i].first) == &slices[i]);
		CHECK(plan_find_slice(&p, 0, slices[i].first + slices[i].count / 2) == &slices[i]);
		CHECK(plan_find_slice(&p, 0, slices[i].first + slices[i].count - 1) == &slices[i]);
	}
}

TEST(the_slice_of_an_input_is_the_one_that_has_it)
{
	check_slices(1, 1);
	check_slices(7, 1);
	check_slices(100000, 10);
	check_slices(UINT64_C(1) << 50, 1000);
}

/* Places of the order, one by one and together, against the library's shuffle. */
static void check_order(uint64_t n, bool in_memory)
{
	enum { SOME = 500 };
	uint64_t want[SOME], got[SOME], at[] = {0, 12345, n - SOME};
	struct shard_error err;
	struct plan p;

	STORY("%llu records", (unsigned long long)n);
	make_plan(&p, n / 3, n - n / 3);
	CHECK_EQ(p.order != NULL, in_memory);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		CHECK_EQ(shard_pack_order(7, n, at[i], SOME, want, &err), SHARD_OK);
		CHECK_EQ(plan_inputs_at(&p, at[i], SOME, got), EXIT_DONE);
		CHECK_MEM(got, want, sizeof(want));
		for (uint64_t k = 0; k < SOME; k += 99)
			CHECK_EQ(plan_input_at(&p, at[i] + k), want[k]);
	}
	plan_free(&p);
}

TEST(more_records_than_a_table_holds_are_shuffled_by_arithmetic)
{
	check_order(100000, true);
	check_order(PLAN_ORDER_MAX, true);
	check_order(PLAN_ORDER_MAX + 1, false);
	check_order(UINT64_C(1) << 33, false);
}

TEST_MAIN()
