/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_byte_sums.c - byte_sums_add() and its portable twin against a sum of one byte after the other
 */
#include "libshard/base/byte_sums.h"

#include "tests/test.h"

#define CHANNELS 16

/* The definition. */
static void sum_plainly(const uint8_t *data, uint64_t bytes, uint32_t channels, struct shard_moments *sums)
{
	for (uint64_t i = 0; i < bytes; i++) {
		struct shard_moments *m = &sums[i % channels];

		m->count++;
		m->sum += data[i];
		m->sum_squares_low += (uint64_t)data[i] * data[i];
	}
}

static void check(const uint8_t *data, uint64_t bytes, uint32_t channels)
{
	struct shard_moments want[CHANNELS] = {{0}}, got[CHANNELS] = {{0}}, portable[CHANNELS] = {{0}};

	STORY("%" PRIu64 " bytes, %u channels", bytes, channels);
	sum_plainly(data, bytes, channels, want);
	byte_sums_portable(data, bytes, channels, portable);
	CHECK_MEM(portable, want, sizeof(want));
	byte_sums_add(data, bytes, channels, got);
	CHECK_MEM(got, want, sizeof(want));
}

static uint8_t *random_bytes(size_t bytes)
{
	uint8_t *data = malloc(bytes);
	uint64_t x = 88172645463325252u;

	CHECK(data);
	for (size_t i = 0; i < bytes; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		data[i] = (uint8_t)(x >> 24);
	}
	return data;
}

/*
 * Each length has memory of its own, not one byte more, for the sanitizer; and is looked at from an
 * odd address.
 */
TEST(every_short_length)
{
	for (uint32_t channels = 1; channels <= CHANNELS; channels++)
		for (size_t bytes = 0; bytes < 300; bytes++) {
			uint8_t *data = random_bytes(bytes + 1);

			check(data + 1, bytes, channels);
			free(data);
		}
}

TEST(long_ones)
{
	static const size_t lengths[] = {3072, 12288, 150528, 150529, 1000003};
	uint8_t *data = random_bytes(1000003);

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (uint32_t channels = 1; channels <= CHANNELS; channels++)
			check(data, lengths[i], channels);
	free(data);
}

/* White, and more than a sum of 32 bits holds in any lane of either loop. */
TEST(no_lane_overflows)
{
	size_t bytes = 9600000;
	uint8_t *data = malloc(bytes);

	CHECK(data);
	memset(data, 255, bytes);
	for (uint32_t channels = 1; channels <= 5; channels++)
		check(data, bytes, channels);
	free(data);
}

/* Sums are added to what is there, and squares carry into their upper half. */
TEST(sums_go_on_from_what_is_there)
{
	static const uint8_t data[40] = {1, 2, 3};
	struct shard_moments sums[2] = {{100, 1000, UINT64_MAX, 7}, {0, 0, UINT64_MAX - 4, 0}};

	byte_sums_add(data, sizeof(data), 2, sums);
	CHECK_EQ(sums[0].count, 120);
	CHECK_EQ(sums[0].sum, 1004);
	CHECK_EQ(sums[0].sum_squares_low, 9);
	CHECK_EQ(sums[0].sum_squares_high, 8);
	CHECK_EQ(sums[1].count, 20);
	CHECK_EQ(sums[1].sum_squares_low, UINT64_MAX);
	CHECK_EQ(sums[1].sum_squares_high, 0);
}

TEST_MAIN()
