/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_random.c - read records of a dataset in any order
 *
 *   cc -O2 read_random.c -o read_random $(pkg-config --cflags --libs libshard)
 *   ./read_random ds/train image 5
 *
 * Opens a dataset, looks up a field, reads records at random, and prints their first bytes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "shard_pack.h"

static void die(const char *why)
{
	fprintf(stderr, "read_random: %s\n", why);
	exit(1);
}

int main(int argc, char **argv)
{
	struct shard_dataset *ds;
	const struct shard_field *field;
	struct shard_error err;
	struct shard_dataset_info info;
	uint64_t count, total;

	if (argc != 4)
		die("usage: read_random DATASET FIELD COUNT");
	if (shard_dataset_open(&ds, argv[1], NULL, &err))
		die(err.message);
	field = shard_schema_find(shard_dataset_schema(ds), argv[2]);
	if (!field)
		die("the dataset has no such field");
	shard_dataset_info(ds, &info);
	total = info.record_count;
	count = strtoull(argv[3], NULL, 10);
	printf("%" PRIu64 " records; %s is %s, %" PRIu64 " bytes\n", total, field->name,
	       shard_name(SHARD_NAME_DTYPE, field->dtype), field->bytes);

	/*
	 * A record of a group is `stride` bytes.  dst says, group by group, which are wanted and
	 * where they go.
	 */
	unsigned char *buffer = malloc(field->stride);
	void *dst[SHARD_GROUPS_MAX] = {NULL};

	if (!buffer)
		die("out of memory");
	dst[field->group] = buffer;
	for (uint64_t i = 0; i < count && i < total; i++) {
		uint64_t idx; /* any will do; these are random and never repeat */
		char key[SHARD_KEY_BYTES_MAX];
		size_t key_bytes;

		if (shard_pack_order(1, total, i, 1, &idx, &err) || shard_dataset_read(ds, &idx, 1, dst, &err) ||
		    shard_dataset_key(ds, idx, key, &key_bytes, &err))
			die(err.message);
		printf("%8" PRIu64 " ", idx);
		for (uint64_t b = 0; b < field->bytes && b < 8; b++)
			printf(" %02x", buffer[field->offset + b]);
		printf("  ");
		/* a key may hold anything; a terminal should not get that */
		for (size_t b = 0; b < key_bytes; b++) {
			unsigned char c = (unsigned char)key[b];

			putchar(c >= 0x20 && c < 0x7f ? c : '?');
		}
		putchar('\n');
	}
	free(buffer);
	shard_dataset_close(ds);
	return 0;
}
