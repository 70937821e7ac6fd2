/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip.c - the members of a ZIP archive, and their places
 */
#include "tools/shardpack/parse/parse.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/bytes.h"

#define END_BYTES      22
#define END64_BYTES    56
#define LOCATOR_BYTES  20
#define ENTRY_BYTES    46
#define LOCAL_BYTES    30
#define COMMENT_MAX    65535
#define FLAG_ENCRYPTED 1u
#define MADE_BY_UNIX   3
#define MADE_BY_MACOS  19  /* which has the same modes */
#define MODE_LINK      012 /* the upper four bits of a mode */

__attribute__((format(printf, 2, 3))) static enum zip_status bad(struct zip *z, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(z->why, ZIP_WHY_BYTES, fmt, ap);
	va_end(ap);
	return ZIP_BAD;
}

static bool read_at(struct zip *z, uint64_t offset, void *out, size_t bytes)
{
	z->why[0] = '\0';
	return z->read(z->context, offset, out, bytes);
}

/* Where the end record stands: behind everything, but for a comment of a length that it says. */
static enum zip_status find_end(struct zip *z, uint64_t *at, uint8_t end[END_BYTES])
{
	uint8_t piece[4096];
	uint64_t low = z->bytes > END_BYTES + COMMENT_MAX ? z->bytes - END_BYTES - COMMENT_MAX : 0;

	for (uint64_t from = z->bytes; z->bytes >= END_BYTES && from > low;) {
		/* Pieces overlap by what a record may span. */
		uint64_t to = from + END_BYTES - 1 < z->bytes ? from + END_BYTES - 1 : z->bytes, start;

		start = to - low > sizeof(piece) ? to - sizeof(piece) : low;
		if (!read_at(z, start, piece, (size_t)(to - start)))
			return ZIP_BAD;
		for (uint64_t i = to - start < END_BYTES ? 0 : to - start - END_BYTES + 1; i-- > 0;)
			if (!memcmp(piece + i, "PK\5\6", 4) &&
			    start + i + END_BYTES + load16(piece + i + 20) == z->bytes) {
				*at = start + i;
				memcpy(end, piece + i, END_BYTES);
				return ZIP_MEMBER;
			}
		from = start;
	}
	return bad(z, "no end record of a ZIP archive; it is cut short, or not a ZIP archive");
}

/*
 * Entries, size and start of the directory from the record of ZIP64, if a locator stands before the
 * other one.
 */
static enum zip_status read_end64(struct zip *z, uint64_t end_at, uint64_t *count, uint64_t *size, uint64_t *begin)
{
	uint8_t locator[LOCATOR_BYTES], record[END64_BYTES];
	uint64_t at;

	if (end_at < LOCATOR_BYTES || !read_at(z, end_at - LOCATOR_BYTES, locator, sizeof(locator)))
		return end_at < LOCATOR_BYTES ? bad(z, "the end record asks for ZIP64, but there is no room for it")
					      : ZIP_BAD;
	at = load64(locator + 8);
	if (memcmp(locator, "PK\6\7", 4) || at > end_at - LOCATOR_BYTES || end_at - LOCATOR_BYTES - at < END64_BYTES)
		return bad(z, "the locator of ZIP64 before offset %" PRIu64 " is damaged", end_at);
	if (!read_at(z, at, record, sizeof(record)))
		return ZIP_BAD;
	if (memcmp(record, "PK\6\6", 4))
		return bad(z, "the end record of ZIP64 at offset %" PRIu64 " is damaged", at);
	*count = load64(record + 32);
	*size = load64(record + 40);
	*begin = load64(record + 48);
	z->end = at;
	return ZIP_MEMBER;
}

static enum zip_status begin(struct zip *z)
{
	uint8_t end[END_BYTES] = {0};
	uint64_t end_at = 0, count, size, start;
	enum zip_status status = find_end(z, &end_at, end);

	if (status != ZIP_MEMBER)
		return status;
	z->end = end_at;
	count = load16(end + 10);
	size = load32(end + 12);
	start = load32(end + 16);
	if (load16(end + 4) != load16(end + 6) || load16(end + 8) != count)
		return bad(
			z,
			"the last of several parts of an archive; join them first: zip -s 0 PARTS.zip --out WHOLE.zip");
	if (count == 0xffff || size == 0xffffffff || start == 0xffffffff) {
		status = read_end64(z, end_at, &count, &size, &start);
		if (status != ZIP_MEMBER)
			return status;
	}
	if (start > z->end || size != z->end - start || count > size / ENTRY_BYTES)
		return bad(z,
			   "the directory at offset %" PRIu64 " has %" PRIu64 " bytes and %" PRIu64
			   " members, which does not fit the archive",
			   start, size, count);
	z->at = z->begin = start;
	z->left = count;
	z->begun = true;
	return ZIP_MEMBER;
}

/*
 * Numbers that do not fit 32 bits stand in an extra field, in this order, without the ones that fit.
 */
static bool read_extra64(const uint8_t *extra, size_t bytes, struct zip_member *m, uint64_t *local)
{
	uint64_t *const wide[] = {&m->bytes, &m->packed_bytes, local};
	size_t n;

	for (; bytes >= 4; extra += n, bytes -= n) {
		size_t at = 4;

		n = 4 + (size_t)load16(extra + 2);
		if (n > bytes)
			return false;
		for (size_t i = 0; load16(extra) == 1 && i < 3; i++) {
			if (*wide[i] != 0xffffffff)
				continue;
			if (n - at < 8)
				return false;
			*wide[i] = load64(extra + at);
			at += 8;
		}
	}
	return true;
}

/* The header before the data must be of the same member; it says where the data begin. */
static enum zip_status check_local_header(struct zip *z, uint64_t local, struct zip_member *m)
{
	uint8_t head[LOCAL_BYTES];
	char name[ZIP_NAME_BYTES_MAX + 1];
	uint64_t extra_bytes;

	if (local > z->begin || z->begin - local < LOCAL_BYTES)
		return bad(z, "'%s': its header at offset %" PRIu64 " lies outside of the archive", m->name, local);
	if (!read_at(z, local, head, sizeof(head)))
		return ZIP_BAD;
	extra_bytes = load16(head + 28);
	if (memcmp(head, "PK\3\4", 4) || load16(head + 26) != m->name_bytes || load16(head + 8) != m->method)
		return bad(z, "'%s': no header of a member at offset %" PRIu64, m->name, local);
	m->offset = local + LOCAL_BYTES + m->name_bytes + extra_bytes;
	if (m->offset > z->begin || m->packed_bytes > z->begin - m->offset)
		return bad(z, "'%s': has %" PRIu64 " bytes at offset %" PRIu64 ", which end outside of the archive",
			   m->name, m->packed_bytes, m->offset);
	if (!read_at(z, local + LOCAL_BYTES, name, m->name_bytes))
		return ZIP_BAD;
	if (memcmp(name, m->name, m->name_bytes))
		return bad(z, "'%s': the header at offset %" PRIu64 " has another name", m->name, local);
	return ZIP_MEMBER;
}

enum zip_status zip_next(struct zip *z, struct zip_member *out)
{
	uint8_t entry[ENTRY_BYTES], extra[65536];
	uint64_t local, rest;
	enum zip_status status = z->begun ? ZIP_MEMBER : begin(z);

	if (status != ZIP_MEMBER)
		return status;
	if (!z->left)
		return z->at == z->end ? ZIP_END
				       : bad(z,
					     "the directory continues at offset %" PRIu64 " after its "
					     "last member",
					     z->at);
	if (z->end - z->at < ENTRY_BYTES)
		return bad(z, "the directory ends within the member at offset %" PRIu64, z->at);
	if (!read_at(z, z->at, entry, sizeof(entry)))
		return ZIP_BAD;
	out->name_bytes = load16(entry + 28);
	rest = out->name_bytes + (uint64_t)load16(entry + 30) + load16(entry + 32);
	if (memcmp(entry, "PK\1\2", 4) || z->end - z->at - ENTRY_BYTES < rest)
		return bad(z, "the directory is damaged at offset %" PRIu64, z->at);
	if (!out->name_bytes || out->name_bytes > ZIP_NAME_BYTES_MAX)
		return bad(z, "a name of %zu bytes at offset %" PRIu64 "; the limit is %d", out->name_bytes, z->at,
			   ZIP_NAME_BYTES_MAX);
	if (!read_at(z, z->at + ENTRY_BYTES, out->name, out->name_bytes) ||
	    !read_at(z, z->at + ENTRY_BYTES + out->name_bytes, extra, load16(entry + 30)))
		return ZIP_BAD;
	out->name[out->name_bytes] = '\0';
	if (strlen(out->name) != out->name_bytes)
		return bad(z, "a name with a NUL byte at offset %" PRIu64, z->at);
	out->is_link = (entry[5] == MADE_BY_UNIX || entry[5] == MADE_BY_MACOS) && load16(entry + 40) >> 12 == MODE_LINK;
	out->method = (uint16_t)load16(entry + 10);
	out->crc = load32(entry + 16);
	out->packed_bytes = load32(entry + 20);
	out->bytes = load32(entry + 24);
	local = load32(entry + 42);
	if (!read_extra64(extra, load16(entry + 30), out, &local))
		return bad(z, "'%s': its extra field at offset %" PRIu64 " is damaged", out->name, z->at);
	if (load16(entry + 8) & FLAG_ENCRYPTED)
		return bad(z,
			   "'%s' at offset %" PRIu64
			   " is encrypted; unpack the archive with its password and pack the files",
			   out->name, local);
	if (out->method != ZIP_STORED && out->method != ZIP_DEFLATED)
		return bad(z,
			   "'%s' at offset %" PRIu64 " is packed by method %u; must be stored (0) or deflated (8); "
			   "make the archive again with zip",
			   out->name, local, out->method);
	if (out->method == ZIP_STORED && out->bytes != out->packed_bytes)
		return bad(z, "'%s' is stored, but has %" PRIu64 " bytes packed and %" PRIu64 " unpacked", out->name,
			   out->packed_bytes, out->bytes);
	z->at += ENTRY_BYTES + rest;
	z->left--;
	return check_local_header(z, local, out);
}
