/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_archives.c - numbers too large for the common tools to make quickly: ZIP64 directories, tar
 * sizes in base 256
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"
#include "tools/shardpack/parse/parse.h"

/* A file that is zeros but for its front and its end, however large. */
struct sparse {
	const uint8_t *front, *back;
	size_t front_bytes, back_bytes;
	uint64_t bytes;
};

static bool read_sparse(void *context, uint64_t offset, void *out, size_t bytes)
{
	const struct sparse *s = context;
	uint8_t *to = out;

	CHECK(offset <= s->bytes && bytes <= s->bytes - offset);
	for (size_t i = 0; i < bytes; i++) {
		uint64_t at = offset + i;

		to[i] = at < s->front_bytes		 ? s->front[at]
			: at >= s->bytes - s->back_bytes ? s->back[at - (s->bytes - s->back_bytes)]
							 : 0;
	}
	return true;
}

static uint8_t *put(uint8_t *at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		*at++ = i < 8 ? (uint8_t)(value >> (8 * i)) : 0;
	return at;
}

static uint8_t *put_text(uint8_t *at, const char *text)
{
	memcpy(at, text, strlen(text));
	return at + strlen(text);
}

/* The first answer about an archive of one member, whose extra field holds `extra_bytes` of its 24. */
static enum zip_status zip64_begin(uint64_t data_bytes, size_t extra_bytes, struct zip_member *m, char *why)
{
	const uint64_t begin = 30 + 1 + data_bytes;
	uint8_t front[64] = {0}, back[512] = {0}, *at = put_text(front, "PK\3\4");
	struct sparse file = {front, back, 31, 0, 0};
	struct zip z = {.read = read_sparse, .context = &file, .why = why};
	enum zip_status first;

	put(at + 22, 1, 2);
	front[30] = 'a';
	at = put_text(back, "PK\1\2");
	at = put(at, 0, 12); /* versions, flags, method, time */
	at = put(at, 7, 4);  /* CRC */
	at = put(put(at, 0xffffffff, 4), 0xffffffff, 4);
	at = put(put(put(at, 1, 2), 4 + extra_bytes, 2), 0, 10);
	at = put(at, 0xffffffff, 4);
	at = put_text(at, "a");
	at = put(put(at, 1, 2), extra_bytes, 2);
	put(put(put(at, data_bytes, 8), data_bytes, 8), 0, 8);
	at += extra_bytes;
	uint64_t directory_bytes = (uint64_t)(at - back);
	at = put_text(at, "PK\6\6");
	at = put(put(put(at, 44, 8), 0, 12), 1, 8);
	at = put(put(put(at, 1, 8), directory_bytes, 8), begin, 8);
	at = put_text(at, "PK\6\7");
	at = put(put(put(at, 0, 4), begin + directory_bytes, 8), 1, 4);
	at = put_text(at, "PK\5\6");
	at = put(put(put(put(put(at, 0, 4), 0xffff, 2), 0xffff, 2), 0xffffffff, 4), 0xffffffff, 4);
	at = put(at, 0, 2);
	file.back_bytes = (size_t)(at - back);
	z.bytes = file.bytes = begin + file.back_bytes;

	first = zip_next(&z, m);
	if (first == ZIP_MEMBER)
		CHECK_EQ(zip_next(&z, &(struct zip_member){.name_bytes = 0}), ZIP_END);
	return first;
}

TEST(zip64_has_members_of_many_gigabytes)
{
	const uint64_t data_bytes = UINT64_C(5) << 32;
	char why[ZIP_WHY_BYTES] = "";
	struct zip_member *m = malloc(sizeof(*m));

	CHECK(m);
	CHECK_EQ(zip64_begin(data_bytes, 24, m, why), ZIP_MEMBER);
	CHECK_STR(m->name, "a");
	CHECK_EQ(m->bytes, data_bytes);
	CHECK_EQ(m->packed_bytes, data_bytes);
	CHECK_EQ(m->offset, 31);
	CHECK_EQ(m->crc, 7);
	free(m);
}

/* What is left of a number, and what lies behind the field, is not taken for it. */
TEST(zip64_numbers_are_whole)
{
	struct zip_member *m = malloc(sizeof(*m));

	CHECK(m);
	for (size_t extra_bytes = 0; extra_bytes < 24; extra_bytes++) {
		char why[ZIP_WHY_BYTES] = "";

		CHECK_EQ(zip64_begin(UINT64_C(5) << 32, extra_bytes, m, why), ZIP_BAD);
		CHECK_STR(why, "'a': its extra field at offset 21474836511 is damaged");
	}
	free(m);
}

/* The header of a member with this size, in base 256. */
static void tar_header(uint8_t head[512], uint64_t data_bytes)
{
	uint32_t sum = 8 * ' ';
	char text[8];

	memset(head, 0, 512);
	strcpy((char *)head, "x.jpg");
	head[124] = 0x80;
	for (int i = 0; i < 8; i++)
		head[135 - i] = (uint8_t)(data_bytes >> (8 * i));
	for (int i = 0; i < 512; i++)
		sum += head[i];
	snprintf(text, sizeof(text), "%06o", sum);
	memcpy(head + 148, text, 7);
}

TEST(tar_has_members_of_many_gigabytes)
{
	const uint64_t data_bytes = UINT64_C(3) << 40;
	uint8_t head[512], none[1024] = {0};
	struct sparse file = {head, none, sizeof(head), sizeof(none), sizeof(head) + data_bytes + sizeof(none)};
	char why[TAR_WHY_BYTES] = "";
	struct tar *t = calloc(1, sizeof(*t));
	struct tar_member *m = malloc(sizeof(*m));

	CHECK(t && m);
	tar_header(head, data_bytes);
	*t = (struct tar){.bytes = file.bytes, .read = read_sparse, .context = &file, .why = why};
	CHECK_EQ(tar_next(t, m), TAR_MEMBER);
	CHECK_STR(m->name, "x.jpg");
	CHECK_EQ(m->bytes, data_bytes);
	CHECK_EQ(m->offset, 512);
	CHECK_EQ(tar_next(t, m), TAR_END);
	free(m);
	free(t);
}

/* 2^63 and more are no sizes: in the type of the system they would be negative. */
TEST(tar_has_no_members_of_eight_exbibytes)
{
	uint8_t head[512], none[1024] = {0};
	struct sparse file = {head, none, sizeof(head), sizeof(none), UINT64_MAX};
	char why[TAR_WHY_BYTES] = "";
	struct tar *t = calloc(1, sizeof(*t));
	struct tar_member *m = malloc(sizeof(*m));

	CHECK(t && m);
	for (int bit = 63; bit >= 61; bit--) {
		tar_header(head, UINT64_C(1) << bit);
		memset(t, 0, sizeof(*t));
		*t = (struct tar){.bytes = file.bytes, .read = read_sparse, .context = &file, .why = why};
		CHECK_EQ(tar_next(t, m), bit == 63 ? TAR_BAD : TAR_MEMBER);
		CHECK(bit != 63 || strstr(why, "size"));
	}
	free(m);
	free(t);
}

TEST_MAIN()
