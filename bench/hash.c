/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.c - rates of the hashes that the format uses, for information: one thread, one photo at a
 * time
 */
#include <stdlib.h>

#include "bench/common/data.h"
#include "shard_pack.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#define SMALL_IMAGES 1	  /* stays in the second-level cache */
#define LARGE_IMAGES 4000 /* 600 MB: comes from memory */
#define LEAST_BYTES  ((uint64_t)600 << 20)

struct job {
	uint8_t *data;
	uint64_t images;
	void (*hash)(const uint8_t *image);
};

static volatile uint64_t sink; /* so that no hash is optimized away */

static void hash_xxh64(const uint8_t *image)
{
	sink += XXH3_64bits(image, DATA_IMAGE_BYTES);
}

static void hash_xxh128(const uint8_t *image)
{
	sink += XXH3_128bits(image, DATA_IMAGE_BYTES).low64;
}

static void hash_ours128(const uint8_t *image)
{
	uint8_t out[16];

	shard_xxh128(image, DATA_IMAGE_BYTES, out);
	sink += out[0];
}

static void hash_sha256(const uint8_t *image)
{
	uint8_t out[32];

	shard_sha256(image, DATA_IMAGE_BYTES, out);
	sink += out[0];
}

static double rate(const struct job *j, void (*hash)(const uint8_t *image))
{
	uint64_t bytes = 0;
	double begin = bench_seconds();

	while (bytes < LEAST_BYTES)
		for (uint64_t i = 0; i < j->images; i++, bytes += DATA_IMAGE_BYTES)
			hash(j->data + i * DATA_IMAGE_BYTES);
	return (double)bytes / (bench_seconds() - begin) / 1e9;
}

static double run_ours(void *context)
{
	struct job *j = context;

	return rate(j, j->hash);
}

static double run_bare128(void *context)
{
	return rate(context, hash_xxh128);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name, *label;
		void (*hash)(const uint8_t *image);
		uint64_t images;
		bool bare;
	} rows[] = {
		{"hash/xxh3-64/cache", "XXH3_64bits", hash_xxh64, SMALL_IMAGES, false},
		{"hash/xxh3-64/memory", "XXH3_64bits", hash_xxh64, LARGE_IMAGES, false},
		{"hash/xxh3-128/memory", "shard_xxh128", hash_ours128, LARGE_IMAGES, true},
		{"hash/sha256/memory", "shard_sha256", hash_sha256, LARGE_IMAGES, false},
	};
	struct bench *b = bench_open(argc, argv);
	struct job j = {NULL, 0, NULL};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bench_row row = {.name = rows[i].name, .unit = "GB/s", .warm_up_count = 1, .context = &j};

		if (!bench_wants(b, row.name))
			continue;
		if (!j.data) {
			j.data = bench_memory(LARGE_IMAGES * DATA_IMAGE_BYTES);
			bench_random_fill(j.data, LARGE_IMAGES * DATA_IMAGE_BYTES, 1);
		}
		row.side[0] = (struct bench_side){rows[i].label, run_ours, NULL, NULL, 0};
		if (rows[i].bare)
			row.side[1] = (struct bench_side){"XXH3_128bits", run_bare128, NULL, NULL, 0};
		j.images = rows[i].images;
		j.hash = rows[i].hash;
		bench_run(b, &row);
	}
	free(j.data);
	return bench_close(b);
}
