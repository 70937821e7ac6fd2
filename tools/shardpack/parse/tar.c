/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.c - the members of a tar archive, and their places
 */
#include "tools/shardpack/parse/parse.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/text.h"

#define EXTRA_BYTES_MAX (1u << 16) /* of a pax header; real ones have a few hundred */

/* Offsets and lengths in a header block. */
enum {
	NAME = 0,
	NAME_BYTES = 100,
	SIZE = 124,
	SIZE_BYTES = 12,
	CHECKSUM = 148,
	CHECKSUM_BYTES = 8,
	TYPE = 156,
	MAGIC = 257,
	PREFIX = 345,
	PREFIX_BYTES = 155,
};

__attribute__((format(printf, 2, 3))) static enum tar_status bad(struct tar *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->why, TAR_WHY_BYTES, fmt, ap);
	va_end(ap);
	return TAR_BAD;
}

/*
 * Octal digits, with blanks around; or big-endian behind a set bit, which GNU writes when digits do
 * not suffice.
 */
static bool read_number(const uint8_t *field, size_t bytes, uint64_t *out)
{
	size_t i = 0;

	*out = 0;
	if (field[0] & 0x80) {
		*out = field[0] & 0x7f;
		for (i = 1; i < bytes; i++) {
			if (*out >> 55)
				return false;
			*out = *out << 8 | field[i];
		}
		return true;
	}
	while (i < bytes && field[i] == ' ')
		i++;
	for (; i < bytes && field[i] >= '0' && field[i] <= '7'; i++)
		*out = *out << 3 | (uint64_t)(field[i] - '0'); /* 12 digits are 36 bits */
	for (; i < bytes; i++)
		if (field[i] != ' ' && field[i] != '\0')
			return false;
	return true;
}

/* Some old archivers summed signed characters. */
bool tar_is_header(const uint8_t block[TAR_BLOCK_BYTES])
{
	uint64_t said;
	uint32_t sum = 0;
	int32_t signed_sum = 0;

	for (uint32_t i = 0; i < TAR_BLOCK_BYTES; i++) {
		uint8_t b = i >= CHECKSUM && i < CHECKSUM + CHECKSUM_BYTES ? ' ' : block[i];

		sum += b;
		signed_sum += (int8_t)b;
	}
	return read_number(block + CHECKSUM, CHECKSUM_BYTES, &said) && (said == sum || (int64_t)said == signed_sum);
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
	while (count && !*bytes) {
		bytes++;
		count--;
	}
	return !count;
}

static bool read_at(struct tar *t, uint64_t offset, void *out, size_t bytes)
{
	t->why[0] = '\0';
	return t->read(t->context, offset, out, bytes);
}

/* Behind the two blocks that end an archive there is nothing but zeros that fill it up. */
static enum tar_status check_end(struct tar *t)
{
	uint8_t piece[4096];
	uint64_t at = t->at;

	if (t->bytes - at < 2 * TAR_BLOCK_BYTES)
		return bad(t,
			   "one block of zeros at offset %" PRIu64 ", but an archive ends with two; it is cut "
			   "short",
			   at);
	while (at < t->bytes) {
		size_t n = t->bytes - at < sizeof(piece) ? (size_t)(t->bytes - at) : sizeof(piece);

		if (!read_at(t, at, piece, n))
			return TAR_BAD;
		if (!is_zero(piece, n))
			return bad(t,
				   "the archive ends at offset %" PRIu64 ", but something follows; give archives "
				   "that were joined as separate files",
				   t->at);
		at += n;
	}
	return TAR_END;
}

/* Take a name over.  False if it leads elsewhere. */
static bool settle_name(const char *name, size_t bytes, struct tar_member *out)
{
	if (!text_settle_path(name, bytes, out->name, sizeof(out->name)))
		return false;
	out->name_bytes = strlen(out->name);
	return true;
}

/* Name and, before it, prefix of a header that no other describes. */
static bool header_name(const uint8_t *block, struct tar_member *out)
{
	char name[PREFIX_BYTES + 1 + NAME_BYTES + 1];
	size_t bytes = 0, n;

	if (!memcmp(block + MAGIC, "ustar\0", 6) && block[PREFIX]) { /* GNU's "ustar " has other things there */
		bytes = strnlen((const char *)block + PREFIX, PREFIX_BYTES);
		memcpy(name, block + PREFIX, bytes);
		name[bytes++] = '/';
	}
	n = strnlen((const char *)block + NAME, NAME_BYTES);
	memcpy(name + bytes, block + NAME, n);
	return settle_name(name, bytes + n, out);
}

/* One record of a pax header: "LENGTH KEY=VALUE\n", the length that of all of it. */
static bool next_record(const char **at, const char *end, const char **key, size_t *key_bytes, const char **value,
			size_t *value_bytes)
{
	const char *start = *at, *digit = start, *equals, *stop;
	size_t length = 0;

	while (digit < end && *digit >= '0' && *digit <= '9' && length <= EXTRA_BYTES_MAX)
		length = length * 10 + (size_t)(*digit++ - '0');
	if (digit == start || digit == end || *digit != ' ' || length > (size_t)(end - start) ||
	    length < (size_t)(digit - start) + 3 || start[length - 1] != '\n')
		return false;
	stop = start + length - 1;
	*key = digit + 1;
	equals = memchr(*key, '=', (size_t)(stop - *key));
	if (!equals)
		return false;
	*key_bytes = (size_t)(equals - *key);
	*value = equals + 1;
	*value_bytes = (size_t)(stop - *value);
	*at = start + length;
	return true;
}

static bool is_key(const char *key, size_t bytes, const char *name)
{
	return strlen(name) == bytes && !memcmp(key, name, bytes);
}

/*
 * What a pax header says of the next member; one for all members (global) may say only what does
 * not matter here.
 */
static enum tar_status read_pax(struct tar *t, uint64_t header_at, uint64_t offset, uint64_t bytes, bool global)
{
	static const char sparse[] = "GNU.sparse.";
	char text[EXTRA_BYTES_MAX];
	const char *at = text, *end = text + bytes, *key, *value;
	size_t key_bytes, value_bytes;

	if (bytes > sizeof(text))
		return bad(t, "a pax header of %" PRIu64 " bytes at offset %" PRIu64 "; the limit is %u", bytes,
			   header_at, EXTRA_BYTES_MAX);
	if (!read_at(t, offset, text, (size_t)bytes))
		return TAR_BAD;
	while (at < end) {
		if (!next_record(&at, end, &key, &key_bytes, &value, &value_bytes))
			return bad(t, "a damaged pax header at offset %" PRIu64, header_at);
		if (key_bytes >= strlen(sparse) && !memcmp(key, sparse, strlen(sparse)))
			return bad(t, "a sparse file at offset %" PRIu64 "; pack the archive without --sparse",
				   header_at);
		if (is_key(key, key_bytes, "path") && !global) {
			if (!value_bytes || value_bytes > TAR_NAME_BYTES_MAX || memchr(value, '\0', value_bytes))
				return bad(t, "a name of %zu bytes at offset %" PRIu64 "; the limit is %d", value_bytes,
					   header_at, TAR_NAME_BYTES_MAX);
			memcpy(t->next_name, value, value_bytes);
			t->next_name[value_bytes] = '\0';
			t->has_name = true;
		} else if (is_key(key, key_bytes, "size")) {
			size_t digits = 0;

			t->next_bytes = 0;
			for (; digits < value_bytes && value[digits] >= '0' && value[digits] <= '9'; digits++) {
				if (t->next_bytes >> 59)
					break;
				t->next_bytes = t->next_bytes * 10 + (uint64_t)(value[digits] - '0');
			}
			if (global || !digits || digits < value_bytes)
				return bad(t, "a pax header at offset %" PRIu64 " whose size is not a number",
					   header_at);
			t->has_bytes = true;
		}
	}
	return TAR_MEMBER;
}

static enum tar_kind kind_of(const uint8_t *block, const struct tar_member *m)
{
	switch (block[TYPE]) {
	case '0':
	case '\0':
	case '7':
		/* Before there was a type, a folder had a slash at its end. */
		return !block[TYPE] && strnlen((const char *)block, NAME_BYTES) &&
				       block[strnlen((const char *)block, NAME_BYTES) - 1] == '/'
			       ? TAR_FOLDER
		       : m->name_bytes ? TAR_FILE
				       : TAR_FOLDER;
	case '5':
		return TAR_FOLDER;
	case '1':
	case '2':
		return TAR_LINK;
	default:
		return TAR_OTHER;
	}
}

/* A header whose checksum is right, at t->at - 512; its data end at t->at afterwards. */
static enum tar_status read_member(struct tar *t, const uint8_t *block, uint64_t data, uint64_t bytes,
				   struct tar_member *out)
{
	bool named = t->has_name ? settle_name(t->next_name, strlen(t->next_name), out) : header_name(block, out);

	out->header_offset = data - TAR_BLOCK_BYTES;
	if (!named)
		return bad(t,
			   "the member at offset %" PRIu64
			   " has a name that is empty, too long, or leads out of the archive: '%.*s'",
			   out->header_offset, 100, t->has_name ? t->next_name : (const char *)block);
	out->kind = kind_of(block, out);
	out->offset = data;
	out->bytes = bytes;
	t->has_name = t->has_bytes = false;
	return TAR_MEMBER;
}

/* What begins like this is not a tar, but may hold one. */
static const struct {
	const char *magic;
	size_t magic_bytes;
	const char *format, *ending;
} packed[] = {
	{"\x1f\x8b", 2, "gzip", ".tar.gz"},  {"BZh", 3, "bzip2", ".tar.bz2"},
	{"\xfd\x37zXZ", 5, "xz", ".tar.xz"}, {"\x28\xb5\x2f\xfd", 4, "Zstandard", ".tar.zst"},
	{"PK\3\4", 4, "ZIP", ".zip"},
};

/* The beginning of a file that is not a tar: its real format, or `otherwise`. */
static enum tar_status bad_beginning(struct tar *t, const uint8_t *at, size_t bytes, const char *otherwise)
{
	for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++)
		if (bytes >= packed[i].magic_bytes && !memcmp(at, packed[i].magic, packed[i].magic_bytes))
			return bad(t, "begins like %s, not like a tar; rename it so that it ends in %s",
				   packed[i].format, packed[i].ending);
	return bad(t, "%s", otherwise);
}

/* The header at t->at, and the data behind it.  *described: it says something of the next one. */
static enum tar_status read_header(struct tar *t, struct tar_member *out, bool *described)
{
	uint8_t block[TAR_BLOCK_BYTES];
	uint64_t header_at = t->at, data, bytes, left;
	char why[TAR_WHY_BYTES];
	uint8_t type;

	*described = false;
	if (!t->bytes)
		return bad(t, "an empty file, not a tar archive");
	if (t->bytes - t->at < TAR_BLOCK_BYTES) {
		if (!t->at && !read_at(t, 0, block, (size_t)t->bytes))
			return TAR_BAD;
		snprintf(why, sizeof(why),
			 "ends at offset %" PRIu64 " without the blocks of zeros that end an archive; it is cut short",
			 t->bytes);
		return bad_beginning(t, block, t->at ? 0 : (size_t)t->bytes, why);
	}
	if (!read_at(t, t->at, block, sizeof(block)))
		return TAR_BAD;
	if (is_zero(block, sizeof(block)))
		return t->has_name || t->has_bytes ? bad(t,
							 "the archive ends at offset %" PRIu64 " where the bytes "
							 "of a member must be",
							 t->at)
						   : check_end(t);
	if (!tar_is_header(block) && t->at)
		return bad(t, "the header at offset %" PRIu64 " has a wrong checksum; the archive is damaged there",
			   t->at);
	if (!tar_is_header(block))
		return bad_beginning(
			t, block, sizeof(block),
			!memcmp(block, "PAR1", 4)
				? "this is a Parquet file, which is not read; write its images and texts with the "
				  "Python package, libshard.Writer"
				: "the header at offset 0 has a wrong checksum; this is not a tar archive");
	if (!read_number(block + SIZE, SIZE_BYTES, &bytes))
		return bad(t, "the size in the header at offset %" PRIu64 " is not a number", t->at);
	type = block[TYPE];
	if (t->has_bytes && type != 'L' && type != 'K' && type != 'x' && type != 'g')
		bytes = t->next_bytes;
	/* Links and folders may state the size of what they stand for, and have no data. */
	if (type == '1' || type == '2' || type == '3' || type == '4' || type == '5' || type == '6')
		bytes = 0;
	data = t->at + TAR_BLOCK_BYTES;
	left = t->bytes - data;
	if (bytes > left)
		return bad(t,
			   "the member at offset %" PRIu64 " has %" PRIu64 " bytes, but the archive ends after %" PRIu64
			   "; it is cut short",
			   t->at, bytes, left);
	t->at = data + bytes + (TAR_BLOCK_BYTES - bytes % TAR_BLOCK_BYTES) % TAR_BLOCK_BYTES;
	if (t->at > t->bytes)
		return bad(t, "ends at offset %" PRIu64 ", within the last block of a member; it is cut short",
			   t->bytes);
	*described = type == 'x' || type == 'g' || type == 'L' || type == 'K';
	if (type == 'S')
		return bad(t, "a sparse file at offset %" PRIu64 "; pack the archive without --sparse", header_at);
	if (type == 'x' || type == 'g')
		return read_pax(t, header_at, data, bytes, type == 'g');
	if (type == 'L') {
		if (!bytes || bytes > TAR_NAME_BYTES_MAX)
			return bad(t, "a name of %" PRIu64 " bytes at offset %" PRIu64 "; the limit is %d", bytes,
				   header_at, TAR_NAME_BYTES_MAX);
		if (!read_at(t, data, t->next_name, (size_t)bytes))
			return TAR_BAD;
		t->next_name[bytes] = '\0'; /* GNU's own NUL is among the bytes */
		t->has_name = true;
	}
	return *described ? TAR_MEMBER : read_member(t, block, data, bytes, out);
}

enum tar_status tar_next(struct tar *t, struct tar_member *out)
{
	enum tar_status status;
	bool described;

	do
		status = read_header(t, out, &described);
	while (status == TAR_MEMBER && described);
	return status;
}
