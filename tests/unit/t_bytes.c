/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_bytes.c - byte order, sums that do not wrap, UTF-8 and hex, against values written out by hand
 */
#include "libshard/base/bytes.h"
#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

TEST(numbers_are_little_endian_at_any_address)
{
	static const uint8_t want[9] = {0xee, 0x01, 0x02, 0x03, 0x84, 0x05, 0x06, 0x07, 0xf8};
	uint8_t got[9] = {0xee, 0, 0, 0, 0, 0, 0, 0, 0};

	CHECK_EQ(load16(want + 1), 0x0201);
	CHECK_EQ(load32(want + 1), 0x84030201u);
	CHECK_EQ(load64(want + 1), UINT64_C(0xf807060584030201));
	store64(got + 1, UINT64_C(0xf807060584030201));
	CHECK_MEM(got, want, 9);
	store32(got + 1, 0x84030201u);
	store16(got + 5, 0x0605);
	CHECK_MEM(got, want, 9);
}

TEST(sums_and_products_know_2_to_the_64)
{
	static const struct {
		uint64_t a, b;
		bool sum_fits, product_fits;
	} rows[] = {
		{0, 0, true, true},
		{UINT64_MAX, 0, true, true},
		{UINT64_MAX, 1, false, true},
		{UINT64_MAX - 1, 1, true, true},
		{UINT64_C(1) << 32, UINT64_C(1) << 32, true, false},
		{(UINT64_C(1) << 32) - 1, (UINT64_C(1) << 32) + 1, true, true},
		{UINT64_C(1) << 63, UINT64_C(1) << 63, false, false},
		{UINT64_C(1) << 63, 2, true, false},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		uint64_t out = 7;

		STORY("%" PRIu64 " and %" PRIu64, rows[i].a, rows[i].b);
		CHECK_EQ(add_fits(rows[i].a, rows[i].b, &out), rows[i].sum_fits);
		CHECK_EQ(out, rows[i].a + rows[i].b);
		CHECK_EQ(mul_fits(rows[i].a, rows[i].b, &out), rows[i].product_fits);
		CHECK_EQ(out, rows[i].a * rows[i].b);
	}
}

TEST(rounding_up)
{
	CHECK_EQ(align_up(0, 4096), 0);
	CHECK_EQ(align_up(1, 4096), 4096);
	CHECK_EQ(align_up(4096, 4096), 4096);
	CHECK_EQ(align_up(4097, 4096), 8192);
	CHECK_EQ(align_up(13, 1), 13);
	CHECK_EQ(align_up(UINT64_C(1) << 63, 4096), UINT64_C(1) << 63);
	CHECK_EQ(ceil_div(0, 3), 0);
	CHECK_EQ(ceil_div(1, 3), 1);
	CHECK_EQ(ceil_div(3, 3), 1);
	CHECK_EQ(ceil_div(UINT64_MAX, 2), UINT64_C(1) << 63);
	CHECK_EQ(min_u64(3, UINT64_MAX), 3);
}

TEST(first_nonzero_finds_every_place)
{
	uint8_t buf[160] = {0};

	for (size_t start = 0; start < 9; start++)
		for (size_t bytes = 0; bytes <= 100; bytes++) {
			STORY("%zu bytes from %zu", bytes, start);
			buf[start + bytes] = 1; /* behind the end: must not be seen */
			CHECK_EQ(first_nonzero(buf + start, bytes), bytes);
			buf[start + bytes] = 0;
			for (size_t at = 0; at < bytes; at++) {
				buf[start + at] = 0x80;
				buf[start + bytes - 1] |= 1; /* a later one does not win */
				CHECK_EQ(first_nonzero(buf + start, bytes), at);
				buf[start + at] = buf[start + bytes - 1] = 0;
			}
		}
}

TEST_MAIN()
