/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_ptx_check.c - the shipped PTX that checks units, run by an interpreter, against checksum64():
 * every length, usual ones, and damage in every place
 *
 * `make check-ptx` sets ALL_N: then units of each length begin at each of 16 addresses.  A sanitizer
 * looks for mistakes of the interpreter: with it fewer lengths are run.
 *
 * TIMEOUT: 240
 * TAKES: 15
 */
#include "tests/ptx/scenes.h"

#define LENGTHS_MOST	 5000u
#define ROUND_16(bytes_) (((bytes_) + 15) / 16 * 16)

static struct ptx_program *program;

static void open_program(void)
{
	if (!program)
		program = read_well(check_ptx);
}

static bool sanitized(void)
{
	return getenv("VARIANT") && *getenv("VARIANT");
}

/* What is drawn is the same each time, or with ALL_N what the seed says. */
static uint64_t seed_of(uint64_t test)
{
	return getenv("ALL_N") && getenv("SEED") ? strtoull(getenv("SEED"), NULL, 10) << 8 | test : test;
}

/* A call whose units have right hashes. */
static void units_open(struct scene *s, struct prng *p, uint64_t bytes, uint64_t step, uint64_t shift, uint32_t rows)
{
	struct check_call *c = &s->call.check;

	memset(s, 0, sizeof(*s));
	c->bytes = bytes;
	c->step = step;
	c->from = SCENE_FROM + shift;
	c->row_count = rows;
	scene_fill_units(s, p);
}

/* The results are those of C; so many units are damaged. */
static void units_run(struct scene *s, uint32_t damaged)
{
	const struct check_result *got = (const struct check_result *)(const void *)s->got;
	char error[PTX_ERROR_BYTES];
	uint32_t found = 0;

	scene_expect_results(s);
	if (!scene_run(s, program, error))
		test_fail(__FILE__, __LINE__, "%s", error);
	for (uint32_t i = 0; i < s->call.check.row_count; i++)
		found += got[i].verdict == CHECK_DAMAGED;
	CHECK_EQ(found, damaged);
	scene_close(s);
}

/*
 * Four units of a length: a sound one, one with a byte that is damaged, one with another expected
 * hash, and one that is skipped, which is damaged too.
 */
static void check_length(struct prng *p, uint64_t bytes, uint64_t step, uint64_t shift)
{
	struct scene s;
	uint32_t order = (uint32_t)prng_below(p, 4);
	struct check_call *c = &s.call.check;

	units_open(&s, p, bytes, step, shift, 4);
	STORY("%" PRIu64 " bytes, %" PRIu64 " apart, from %" PRIu64, bytes, step, shift);
	if (bytes)
		scene_damage(p, s.from + (order ^ 1) * step, bytes);
	c->want[order ^ 2] ^= UINT64_C(1) << prng_below(p, 64);
	c->want[order ^ 3]++;
	c->skip[0] = 1u << (order ^ 3);
	units_run(&s, bytes ? 2 : 1);
}

TEST(every_length_has_the_hash_of_c)
{
	struct prng p = {seed_of(1)};
	uint32_t shifts = getenv("ALL_N") ? 16 : 1, by = sanitized() ? 7 : 1;

	open_program();
	for (uint32_t bytes = 0; bytes <= LENGTHS_MOST; bytes += bytes < 300 ? 1 : by)
		for (uint32_t k = 0; k < shifts; k++) {
			uint32_t shift = shifts > 1 ? k : bytes % 3 ? bytes / 3 % 16 : 0;

			check_length(&p, bytes, shift ? bytes : ROUND_16(bytes), shift);
		}
}

TEST(usual_lengths_have_the_hash_of_c)
{
	static const uint64_t usual[] = {3072, 4096, 12288, 16384, 65536, 150528, 196608, 262144, 602112};
	struct prng p = {seed_of(2)};

	open_program();
	for (size_t i = 0; i < COUNT(usual) && (!sanitized() || i < 3); i++)
		for (uint64_t more = 0; more < 2; more++) {
			check_length(&p, usual[i] + more, ROUND_16(usual[i] + more), 0);
			if (getenv("ALL_N") || usual[i] < 100000)
				check_length(&p, usual[i] + more, usual[i] + more, 1 + prng_below(&p, 15));
		}
}

/* ---- damage in every place ---- */

/* Rows of the same bytes; in row i the byte at[i] is another. */
static void check_places(struct prng *p, uint64_t bytes, uint64_t shift, const uint64_t *at, uint32_t rows)
{
	uint64_t step = shift ? bytes : ROUND_16(bytes);
	struct scene s;

	units_open(&s, p, bytes, step, shift, rows);
	STORY("%" PRIu64 " bytes from %" PRIu64 ", %u places", bytes, shift, rows);
	for (uint32_t i = 0; i < rows; i++) {
		if (i)
			memcpy(s.from + i * step, s.from, bytes);
		s.call.check.want[i] = s.call.check.want[0];
	}
	for (uint32_t i = 0; i < rows; i++)
		s.from[i * step + at[i]] ^= (uint8_t)(1u << prng_below(p, 8));
	units_run(&s, rows);
}

/* Each byte of a short unit.  Of a long one a byte of each 16, and each of the first and last ones. */
TEST(damage_in_every_place_is_found)
{
	static const uint64_t lengths[] = {1,	2,    3,    4,	  5,	8,    9,    15,	  16,	17,   32,
					   33,	64,   100,  128,  129,	143,  144,  200,  240,	241,  256,
					   999, 1024, 1025, 1088, 1089, 2047, 2048, 2049, 3072, 4160, 5000};
	struct prng p = {seed_of(3)};

	open_program();
	for (size_t i = 0; i < COUNT(lengths) && (!sanitized() || lengths[i] < 1100); i++)
		for (uint64_t shift = 0; shift <= 3; shift += 3) {
			uint64_t bytes = lengths[i], at[CHECK_ROWS];
			uint32_t rows = 0;

			for (uint64_t b = 0; b < bytes; b++)
				if (bytes <= CHECK_SHORT || b < 8 || bytes - b <= 80 || b % 16 == (b / 16 + shift) % 16)
					at[rows++] = b;
			CHECK(rows <= CHECK_ROWS);
			check_places(&p, bytes, shift, at, rows);
		}
}

/* ---- numbers of rows ---- */

TEST(each_row_has_its_own_result)
{
	static const uint32_t rows[] = {1, 2, 3, 31, 32, 33, 63, 64, 65, 128, 495, CHECK_ROWS};
	static const uint64_t lengths[] = {0, 7, 200, 300};
	struct prng p = {seed_of(4)};

	open_program();
	for (size_t i = 0; i < COUNT(rows) * COUNT(lengths); i++) {
		uint64_t bytes = lengths[i % COUNT(lengths)];
		uint32_t count = rows[i / COUNT(lengths)], damaged = 0;
		struct scene s;

		units_open(&s, &p, bytes, bytes + i % 2, i % 3, count);
		STORY("%u units of %" PRIu64 " bytes", count, bytes);
		for (uint32_t row = 0; row < count; row++) {
			uint64_t kind = prng_below(&p, 4);

			s.call.check.want[row] += kind == 0;
			s.call.check.skip[row / 32] |= (uint32_t)(kind == 1) << row % 32;
			damaged += kind == 0;
		}
		units_run(&s, damaged);
	}
}

/* The control for all of these: a kernel with another secret. */
TEST(each_byte_of_the_secret_matters)
{
	static const uint64_t lengths[] = {1, 4, 9, 16, 17, 65, 128, 144, 240, 241, 300, 1100, 2100};
	struct prng p = {seed_of(5)};

	open_program();
	for (uint32_t byte = 0; byte < program->constant_bytes; byte++) {
		uint32_t seen = 0;

		program->constant[byte] ^= 1;
		for (size_t i = 0; i < COUNT(lengths); i++) {
			char error[PTX_ERROR_BYTES];
			struct scene s;

			units_open(&s, &p, lengths[i], lengths[i], 0, 1);
			scene_expect_results(&s);
			seen += !scene_run(&s, program, error);
			scene_close(&s);
		}
		program->constant[byte] ^= 1;
		STORY("byte %u", byte);
		CHECK(seen > 0);
	}
}

TEST_MAIN()
