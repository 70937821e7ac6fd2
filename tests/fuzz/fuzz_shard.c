/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_shard.c - any bytes at all as a shard: opened, looked at, read and verified
 *
 * Behind checksums a fuzzer is blind, so every input is tried twice: as it is, and sealed again,
 * with all hashes and the file size made right.  The mutator changes fields of the pages and tables
 * rather than bytes anywhere, and seals nine of ten.  Beyond "no crash", what calls say must fit
 * together: after a verify that found nothing every record and key can be read; a checked read
 * gives what an unchecked one does; errors are one clean line.
 *
 * Does it find anything?  tests/fuzz/_control.sh takes one check out of the library and lets it
 * search for a minute.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/shard_format.h"
#include "libshard/base/bytes.h"
#include "libshard/format/format.h"
#include "shard.h"
#include "shard_inspect.h"
#include "tests/fuzz/fuzz.h"

#define READ_BYTES_MAX ((size_t)4 << 20) /* of one call; a stride may be 1 GiB */

/* ---- seal again ---- */

struct place { /* of a section, within the file */
	uint32_t type, group;
	uint8_t *at;
	size_t bytes;
};

static struct disk_footer *footer_of(uint8_t *data, size_t size)
{
	return (struct disk_footer *)(void *)(data + size - sizeof(struct disk_footer));
}

/* The sections that lie within the file. */
static unsigned find_sections(uint8_t *data, size_t size, struct place out[SHARD_SECTIONS_MAX])
{
	const struct disk_footer *f = footer_of(data, size);
	unsigned count = load32(f->section_count.b), found = 0;

	for (unsigned i = 0; i < count && i < SHARD_SECTIONS_MAX; i++) {
		const struct disk_section_entry *e = &f->section[i];
		uint64_t offset = load64(e->offset.b), bytes = load64(e->bytes.b), end = size - SHARD_PAGE_BYTES;

		if (offset >= SHARD_PAGE_BYTES && offset <= end && bytes <= end - offset)
			out[found++] =
				(struct place){load32(e->type.b), load32(e->group.b), data + offset, (size_t)bytes};
	}
	return found;
}

static const struct place *section_of(const struct place *s, unsigned count, uint32_t type, uint32_t group)
{
	for (unsigned i = 0; i < count; i++)
		if (s[i].type == type && s[i].group == group)
			return &s[i];
	return NULL;
}

/* Stored hash of each chunk, and the leaf hash of what it decodes to, if it does. */
static void seal_chunks(uint8_t *file, size_t size, const struct place *index, const struct place *leaf, uint64_t bytes)
{
	static uint8_t decoded[1 << 20];
	struct disk_chunk *c = (struct disk_chunk *)(void *)index->at;

	for (size_t i = 0; i < index->bytes / sizeof(*c) && i < 4096; i++) {
		uint64_t offset = load64(c[i].offset.b), stored = load32(c[i].stored_bytes.b),
			 padded = align_up(stored, SHARD_CHUNK_ALIGN);
		bool is_lz4 = load32(c[i].flags.b);
		uint64_t n = is_lz4 ? bytes : stored;

		if (offset > size || padded > size - offset || n > sizeof(decoded))
			continue;
		store64(c[i].stored_hash.b, checksum64(file + offset, padded));
		if (leaf && 8 * i + 8 <= leaf->bytes && n &&
		    (!is_lz4 || !lz4_decode(file + offset, stored, decoded, n)))
			store64(leaf->at + 8 * i, checksum64(is_lz4 ? decoded : file + offset, n));
	}
}

static void seal_group(uint8_t *file, size_t size, uint32_t group, const struct place *s, unsigned count)
{
	const struct disk_header *h = (const struct disk_header *)(const void *)file;
	const struct place *data = section_of(s, count, SHARD_SECTION_DATA, group),
			   *leaf = section_of(s, count, SHARD_SECTION_HASH, group);
	const struct place *index = section_of(s, count, SHARD_SECTION_CIDX, group);
	uint64_t stride = load64(h->group[group].stride.b), unit_records = load32(h->group[group].unit_records.b), unit,
		 at = 0;

	if (!data || !leaf || !mul_fits(stride, unit_records, &unit) || !unit)
		return;
	if (load32(h->group[group].codec.b) == SHARD_LZ4) {
		if (index)
			seal_chunks(file, size, index, leaf, unit);
		return;
	}
	for (size_t i = 0; i < leaf->bytes / 8 && at < data->bytes; i++, at += min_u64(unit, data->bytes - at))
		store64(leaf->at + 8 * i, checksum64(data->at + at, min_u64(unit, data->bytes - at)));
}

/* Make hashes right: 1 the pages' alone, 2 the tables' too, 3 those of units and chunks too. */
static void seal(uint8_t *data, size_t size, int depth)
{
	struct disk_header *h = (struct disk_header *)(void *)data;
	struct disk_footer *f;
	struct place s[SHARD_SECTIONS_MAX];
	struct hash128 hash;
	unsigned count;

	if (size < sizeof(*h) + sizeof(*f))
		return;
	f = footer_of(data, size);
	count = find_sections(data, size, s);
	for (uint32_t g = 0; depth > 2 && g < SHARD_GROUPS_MAX; g++)
		seal_group(data, size, g, s, count);
	for (unsigned i = 0; depth > 1 && i < SHARD_SECTIONS_MAX; i++) {
		struct disk_section_entry *e = &f->section[i];
		const struct place *p = section_of(s, count, load32(e->type.b), load32(e->group.b));

		if (p && p->type != SHARD_SECTION_DATA) {
			hash = checksum128(p->at, p->bytes);
			memcpy(e->hash, hash.b, sizeof(e->hash));
		}
	}
	hash = checksum128(h, sizeof(*h) - sizeof(h->hash));
	memcpy(h->hash, hash.b, sizeof(h->hash));
	memcpy(f->header_hash, hash.b, sizeof(f->header_hash));
	store64(f->file_bytes.b, size);
	hash = checksum128(f, sizeof(*f) - sizeof(f->hash));
	memcpy(f->hash, hash.b, sizeof(f->hash));
}

/* ---- use it ---- */

static unsigned sink; /* what was read is used, so that no read is left out */

static void use(const void *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		sink += ((const uint8_t *)p)[i];
}

/* Some neighbouring records, in a buffer of exactly their size. */
static void read_records(struct shard_reader *r, struct shard_reader *unchecked, uint32_t group, uint64_t first,
			 uint64_t count, bool good)
{
	uint64_t stride = shard_reader_schema(r)->group[group].stride;
	struct shard_error err;
	struct shard_view view;
	uint8_t *a, *b;
	int rc, seen;

	if (!stride || count > READ_BYTES_MAX / stride || !count)
		return;
	a = malloc((size_t)(count * stride));
	b = malloc((size_t)(count * stride));
	must(a && b, "no memory");
	rc = shard_reader_read(r, group, first, count, a, &err);
	check_error(rc, &err);
	must(!good || !rc, "verified, but a record cannot be read");
	if (!shard_reader_read(unchecked, group, first, count, b, &err) && !rc)
		must(!memcmp(a, b, (size_t)(count * stride)), "checked and unchecked reads differ");
	if (!rc)
		use(a, (size_t)(count * stride));
	seen = shard_reader_view(r, group, first, &view, &err);
	check_error(seen, &err);
	if (!seen) {
		must(view.bytes == stride && (rc || !memcmp(view.data, a, view.bytes)), "a view is not what was read");
		use(view.data, view.bytes);
	}
	free(a);
	free(b);
}

static void read_data(struct shard_reader *r, struct shard_reader *unchecked, bool good)
{
	struct shard_info info;

	shard_reader_info(r, &info);
	for (uint32_t g = 0; g < shard_reader_schema(r)->group_count && info.record_count; g++) {
		uint64_t n = info.record_count;

		read_records(r, unchecked, g, 0, 1, good);
		read_records(r, unchecked, g, n - 1, 1, good);
		read_records(r, unchecked, g, n / 3, n - n / 3, good);
		read_records(r, unchecked, g, 0, n < 9 ? n : 9, good);
	}
}

/* Keys, misses, provenance, statistics, sections. */
static void read_tables(struct shard_reader *r, bool good)
{
	struct shard_info info;
	struct shard_error err;
	struct shard_view v;
	struct shard_miss miss;
	struct shard_moments m;
	struct shard_section s;
	uint64_t n;
	int rc;

	shard_reader_info(r, &info);
	for (uint64_t i = 0; i < info.record_count && i < 300; i++) {
		rc = shard_reader_key(r, i % 2 ? info.record_count - 1 - i / 2 : i / 2, &v, &err);
		check_error(rc, &err);
		must(!good || !rc, "verified, but a key cannot be read");
		if (!rc)
			use(v.data, v.bytes);
	}
	for (uint64_t i = 0; i < info.miss_count && i < 300; i++) {
		rc = shard_reader_miss(r, info.miss_count - 1 - i, &miss, &err);
		check_error(rc, &err);
		must(!good || (!rc && miss.reason && miss.how), "verified, but a miss is wrong");
	}
	if (!shard_reader_provenance(r, &v, &err))
		use(v.data, v.bytes);
	for (uint32_t f = 0; f <= shard_reader_schema(r)->field_count; f++) {
		for (uint32_t c = 0; c < 300 && !shard_reader_moments(r, f, c, &m, &err); c++)
			sink += (unsigned)m.sum;
		for (uint64_t c = 0; c < 300 && !shard_reader_class_records(r, f, c, &n, &err); c++)
			sink += (unsigned)n;
	}
	for (uint32_t i = 0; !shard_reader_section(r, i, &s, &err); i++)
		must(s.offset < info.file_bytes && s.bytes < info.file_bytes, "a section lies outside");
}

/* What a trainer relies on when it adds offsets up. */
static void use_schema(const struct shard_reader *r)
{
	const struct shard_schema *s = shard_reader_schema(r);

	for (uint32_t i = 0; i < s->field_count; i++) {
		const struct shard_field *f = &s->field[i];
		const struct shard_group *g = &s->group[f->group < s->group_count ? f->group : 0];

		must(f->group < s->group_count && f->offset <= g->record_bytes &&
			     f->bytes <= g->record_bytes - f->offset && g->record_bytes <= g->stride &&
			     f->stride == g->stride && f->bytes,
		     "a field lies outside its record");
		must(shard_schema_find(s, f->name) == f, "a field is not found by its name");
	}
}

static void use_shard(const char *path)
{
	struct shard_reader_options never = {.size = sizeof(never), .check = SHARD_CHECK_NEVER};
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1};
	struct shard_verify_report report;
	struct shard_reader *r = NULL, *unchecked = NULL;
	struct shard_error err;
	int rc = shard_reader_open(&r, path, NULL, &err), opened = rc;

	check_error(rc, &err);
	rc = shard_reader_open(&unchecked, path, &never, &err);
	must(rc == opened, "whether a shard opens depends on checks of records");
	if (rc)
		return;
	use_schema(r);
	rc = shard_reader_verify(r, &o, &report, &err);
	check_error(rc, &err);
	read_data(r, unchecked, !rc);
	read_tables(r, !rc);
	read_tables(unchecked, false);
	shard_reader_close(r);
	shard_reader_close(unchecked);
}

/* ---- libFuzzer ---- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	char path[64];
	uint8_t *sealed;

	if (fd < 0)
		fd = memfd_create("shard", MFD_CLOEXEC);
	must(fd >= 0, "no memory file");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(!ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size, "the memory file cannot be written");
	use_shard(path);
	if (size < 2 * SHARD_PAGE_BYTES)
		return 0;
	sealed = malloc(size);
	must(sealed, "no memory");
	memcpy(sealed, data, size);
	seal(sealed, size, 3);
	if (memcmp(sealed, data, size)) {
		must(pwrite(fd, sealed, size, 0) == (ssize_t)size, "the memory file cannot be written");
		use_shard(path);
	}
	free(sealed);
	return 0;
}

/* Where a change is likely to matter: begin, end, from the start of the header or of the footer. */
static const struct zone {
	bool in_footer;
	uint16_t begin, end;
} zones[] = {
	{false, 16, 80},    {false, 256, 320},	 {false, 320, 768},  {false, 768, 1280},
	{false, 816, 896},  {false, 1280, 3840}, {true, 8, 56},	     {true, 24, 40},
	{true, 1024, 1088}, {true, 1024, 1536},	 {true, 1536, 3072},
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	struct place s[SHARD_SECTIONS_MAX];
	struct dice d = dice(seed);
	unsigned kind = dice_roll(&d, 8), count;

	if (kind == 0 || size < 2 * SHARD_PAGE_BYTES) {
		size = LLVMFuzzerMutate(data, size, size_max);
	} else if (kind == 1 && size + SHARD_PAGE_BYTES <= size_max) { /* a page more, before the footer */
		memcpy(data + size, data + size - SHARD_PAGE_BYTES, SHARD_PAGE_BYTES);
		memset(data + size - SHARD_PAGE_BYTES, dice_roll(&d, 2) ? 0 : (int)dice_roll(&d, 256),
		       SHARD_PAGE_BYTES);
		size += SHARD_PAGE_BYTES;
	} else if (kind == 2 || kind == 3) { /* within a table */
		count = find_sections(data, size, s);
		if (count) {
			const struct place *p = &s[dice_roll(&d, count)];

			dice_poke(&d, p->at, p->bytes);
		}
	} else {
		for (unsigned n = 1 + dice_roll(&d, 3); n; n--) {
			const struct zone *z = &zones[dice_roll(&d, sizeof(zones) / sizeof(zones[0]))];

			dice_poke(&d, (z->in_footer ? data + size - SHARD_PAGE_BYTES : data) + z->begin,
				  z->end - z->begin);
		}
	}
	if (dice_roll(&d, 10))
		seal(data, size, 1 + (int)dice_roll(&d, 3));
	return size;
}
