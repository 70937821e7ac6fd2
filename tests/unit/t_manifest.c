/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_manifest.c - the text of a manifest: taken apart, written again, and each rule broken in one
 * line
 */
#include "libshard/base/bytes.h"
#include "libshard/base/words.h"
#include "libshard/format/format.h"
#include "shard_pack.h"
#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROOT	 "000102030405060708090a0b0c0d0e0f"
#define HEX64	 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static const char *const lines[] = {
	/* 0 */ "shardset 1",
	/* 1 */ "records 5",
	/* 2 */ "shards 2",
	/* 3 */ "plan " HEX64,
	/* 4 */ "order shuffle 18446744073709551615",
	/* 5 */ "group 0 stride 192 record 190 align 6 codec lz4 unit 512 chunk 512",
	/* 6 */ "group 1 stride 64 record 60 align 4 codec raw unit 64 chunk 0",
	/* 7 */
	"field 0 image group 0 kind tensor dtype u8 layout hwc semantic image offset 0 bytes 186 shape 2,31,3 axes - "
	"length -",
	/* 8 */
	"field 1 label group 1 kind tensor dtype i64 layout none semantic label offset 0 bytes 8 shape - axes - length "
	"-",
	/* 9 */
	"field 2 lengths group 1 kind tensor dtype u32 layout none semantic length offset 8 bytes 8 shape 2 axes - "
	"length -",
	/* 10 */
	"field 3 boxes group 1 kind ragged dtype bf16 layout none semantic boxes offset 16 bytes 24 shape 3,2,2 axes "
	"0,2 length 2",
	/* 11 */ "class 0 a",
	/* 12 */ "class 1 zw%C3%B6lf%20%25",
	/* 13 */ "stat moments 0 0 310 7 1785",
	/* 14 */ "stat moments 0 1 310 0 0",
	/* 15 */ "stat moments 0 2 310 79050 20157750",
	/* 16 */ "stat classes 1 0 2",
	/* 17 */ "stat classes 1 1 3",
	/* 18 */ "shard 0 00000.shard bytes 8192 records 2 root " ROOT " sha256 " HEX64,
	/* 19 */ "shard 1 part-1/x_Y.0 bytes 17592186044416 records 3 root " ROOT " sha256 " HEX64,
};

static char text[1 << 16];

/*
 * The lines, one of them replaced (NULL: left out; may hold several lines), and a right end line.
 * The length is returned.
 */
static size_t manifest(int replaced, const char *by)
{
	uint8_t sha256[32], hash[16];
	size_t used = 0;

	for (int i = 0; i < (int)COUNT(lines); i++) {
		const char *l = i == replaced ? by : lines[i];

		if (l)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\n", l);
	}
	shard_sha256(text, used, sha256);
	used += (size_t)snprintf(text + used, sizeof(text) - used, "end ");
	hex_from_bytes(text + used, sha256, 32);
	text[used + 64] = ' ';
	shard_xxh128(text, used + 65, hash);
	manifest_hash_text(text + used + 65, hash);
	text[used + 97] = '\n';
	return used + 98;
}

static int read_text(size_t bytes, struct manifest *m, const struct manifest_sink *sink, struct shard_error *err)
{
	struct manifest_end end;
	uint8_t hash[16];
	int rc = manifest_find_end(text, bytes, &end, err);

	if (rc)
		return rc;
	shard_xxh128(text, end.hash_at, hash);
	rc = manifest_check_hash(&end, hash, err);
	return rc ? rc : manifest_parse(text, end.end_at, m, sink, err);
}

/* ---- both ways ---- */

struct seen {
	char out[1 << 14]; /* the lines, written again from what the sink was given */
	size_t used;
};

static void on_class(void *context, uint64_t idx, const char *name, size_t bytes)
{
	struct seen *s = context;
	char plain[SHARD_MANIFEST_LINE_BYTES_MAX + 1], again[3 * SHARD_MANIFEST_LINE_BYTES_MAX + 1];

	percent_encode(again, plain, (size_t)text_decode(name, bytes, false, plain), false);
	s->used += (size_t)snprintf(s->out + s->used, sizeof(s->out) - s->used, "class %" PRIu64 " %s\n", idx, again);
}

static void on_moments(void *context, uint32_t field, uint32_t channel, const struct shard_moments *m)
{
	struct seen *s = context;

	s->used += manifest_write_moments(s->out + s->used, field, channel, m);
}

static void on_class_records(void *context, uint32_t field, uint64_t class_idx, uint64_t records)
{
	struct seen *s = context;

	s->used += (size_t)snprintf(s->out + s->used, sizeof(s->out) - s->used,
				    "stat classes %u %" PRIu64 " %" PRIu64 "\n", field, class_idx, records);
}

static void on_shard(void *context, uint64_t idx, const struct manifest_shard *shard)
{
	struct seen *s = context;

	s->used += manifest_write_shard(s->out + s->used, idx, shard);
}

TEST(taken_apart_and_written_again)
{
	static struct seen seen, schema;
	const struct manifest_sink sink = {&seen, on_class, on_moments, on_class_records, on_shard};
	static const uint8_t plan[4] = {0x00, 0x11, 0x22, 0x33};
	size_t bytes = manifest(-1, NULL), at = 0;
	struct shard_error err = {.message = ""};
	struct manifest m;

	CHECK_EQ(read_text(bytes, &m, &sink, &err), SHARD_OK);
	CHECK_EQ(m.record_count, 5);
	CHECK_EQ(m.shard_count, 2);
	CHECK_EQ(m.class_count, 2);
	CHECK(m.has_plan_digest);
	CHECK_MEM(m.plan_digest, plan, 4);
	CHECK_EQ(m.order, SHARD_ORDER_SHUFFLE);
	CHECK_EQ(m.seed, UINT64_MAX);
	CHECK_EQ(m.schema.field[3].ragged_axes, 5);
	CHECK_EQ(m.schema.field[3].stride, 64);
	for (uint32_t i = 0; i < 2; i++)
		schema.used += manifest_write_group(schema.out + schema.used, &m.schema, i);
	for (uint32_t i = 0; i < 4; i++)
		schema.used += manifest_write_field(schema.out + schema.used, &m.schema, i);
	for (int i = 0; i < 5; i++)
		at += strlen(lines[i]) + 1;
	CHECK_MEM(schema.out, text + at, schema.used);
	CHECK_MEM(seen.out, text + at + schema.used, seen.used);
	CHECK_EQ(at + schema.used + seen.used, bytes - 102);
}

TEST(roots_are_written_high_half_first)
{
	struct manifest_shard s = {
		.file = "x.shardIGNORED", .file_name_bytes = 7, .file_bytes = 8192, .record_count = 1};
	char line[SHARD_MANIFEST_LINE_BYTES_MAX + 1];

	for (int i = 0; i < 16; i++)
		s.root[i] = (uint8_t)i;
	manifest_write_shard(line, 3, &s);
	CHECK(!strncmp(line, "shard 3 x.shard bytes 8192 records 1 root 0f0e0d0c0b0a09080706050403020100 sha256 0000",
		       86));
}

TEST(squares_have_128_bits)
{
	struct shard_moments m = {1, 2, 0, 0};
	char line[SHARD_MANIFEST_LINE_BYTES_MAX + 1];

	manifest_write_moments(line, 1, 2, &m);
	CHECK_STR(line, "stat moments 1 2 1 2 0\n");
	m.sum_squares_high = 1;
	manifest_write_moments(line, 1, 2, &m);
	CHECK_STR(line, "stat moments 1 2 1 2 18446744073709551616\n");
	m.sum_squares_low = m.sum_squares_high = UINT64_MAX;
	manifest_write_moments(line, 1, 2, &m);
	CHECK_STR(line, "stat moments 1 2 1 2 340282366920938463463374607431768211455\n");
}

TEST(the_longest_lines_fit)
{
	struct shard_schema s = {.group = {{1, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX, UINT64_MAX}}};
	struct shard_field *f = &s.field[0];
	char line[SHARD_MANIFEST_LINE_BYTES_MAX + 1], file[402];
	struct manifest_shard shard = {file, 401, UINT64_MAX, UINT64_MAX, {0}, {0}};
	size_t bytes;

	memset(f->name, 'n', 47);
	memset(file, 'f', sizeof(file));
	f->dtype = SHARD_BOOL;
	f->ndim = 8;
	f->ragged_axes = 0xff;
	f->offset = f->bytes = UINT64_MAX;
	memset(f->shape, 0xff, sizeof(f->shape));
	bytes = manifest_write_group(line, &s, 7);
	CHECK_EQ(bytes, strlen(line));
	bytes = manifest_write_field(line, &s, 0);
	CHECK_EQ(bytes, strlen(line));
	CHECK(strstr(line,
		     " shape 4294967295,4294967295,4294967295,4294967295,4294967295,4294967295,4294967295,4294967295 "
		     "axes 0,1,2,3,4,5,6,7 length 0\n"));
	bytes = manifest_write_shard(line, UINT64_MAX, &shard);
	CHECK_EQ(bytes, strlen(line));
	CHECK(strlen(line) < SHARD_MANIFEST_LINE_BYTES_MAX);
}

/* ---- one line at a time ---- */

#define S(n, file)  "shard " #n " " file " bytes 8192 records 3 root " ROOT " sha256 " HEX64
#define FIELD(rest) "field 3 boxes group 1 kind ragged dtype bf16 layout none semantic boxes " rest
#define X8(x)	    x x x x x x x x

static const struct {
	const char *story;
	int line;
	const char *by, *number;
} rows[] = {
	{"as it is", -1, NULL, NULL},
	{"another first word", 0, "shardsets 1", "M1"},
	{"version 2", 0, "shardset 2", "M4"},
	{"version 10", 0, "shardset 10", "M4"},
	{"version 01 is no number", 0, "shardset 01", "M7"},
	{"version x is no number", 0, "shardset x", "M7"},
	{"a word behind the version", 0, "shardset 1 2", "M6"},
	{"empty line", 3, "plan -\n", "M5"},
	{"two spaces", 1, "records  5", "M5"},
	{"space first", 1, " records 5", "M5"},
	{"space last", 1, "records 5 ", "M5"},
	{"tab", 1, "records\t5", "M5"},
	{"DEL", 11, "class 0 a\x7f", "M5"},
	{"byte above ASCII", 11, "class 0 \xc3\xa9", "M5"},
	{"carriage return", 1, "records 5\r", "M5"},
	{"no records", 1, NULL, "M6"},
	{"records twice", 1, "records 5\nrecords 5", "M6"},
	{"shards before records", 1, "shards 2\nrecords 5", "M6"},
	{"records without a number", 1, "records", "M6"},
	{"only the head, and not all of it", 4, NULL, "M6"},
	{"unknown line", 17, "stat classes 1 1 3\nmore 1", "M6"},
	{"a class behind statistics", 17, "stat classes 1 1 3\nclass 2 b", "M6"},
	{"a field before the groups", 4, "order -\nfield 0 a", "M6"},
	{"group line, word missing", 5, "group 0 stride 192 align 6 codec lz4 unit 512 chunk 512", "M6"},
	{"group line, more words", 6, "group 1 stride 64 record 60 align 4 codec raw unit 64 chunk 0 0", "M6"},
	{"shard line cut", 19, "shard 1 x bytes 8192 records 3 root " ROOT, "M6"},
	{"stat of another kind", 16, "stat median 1 0 2", "M6"},
	{"order of another kind", 4, "order random", "M6"},
	{"order shuffle without a seed", 4, "order shuffle", "M6"},
	{"order source with a seed", 4, "order source 1", "M6"},
	{"order source", 4, "order source", NULL},
	{"order unknown", 4, "order -", NULL},
	{"no plan", 3, "plan -", NULL},
	{"records 05", 1, "records 05", "M7"},
	{"records -5", 1, "records -5", "M7"},
	{"records above 2^62", 1, "records 4611686018427387905", "M7"},
	{"records of 2^62", 1, "records 4611686018427387904", "M11"}, /* now the class counts do not add up */
	{"shards above 2^32", 2, "shards 4294967297", "M7"},
	{"shards of 2^32", 2, "shards 4294967296", "M13"},
	{"seed of 2^64", 4, "order shuffle 18446744073709551616", "M7"},
	{"upper-case digest", 3, "plan 00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff", "M7"},
	{"short digest", 3, "plan 0011", "M7"},
	{"stride of 2^64", 5, "group 0 stride 18446744073709551616 record 190 align 6 codec lz4 unit 512 chunk 512",
	 "M7"},
	{"align of 2^32", 5, "group 0 stride 192 record 190 align 4294967296 codec lz4 unit 512 chunk 512", "M7"},
	{"field in group 65536", 10,
	 "field 3 boxes group 65536 kind ragged dtype bf16 layout none semantic boxes offset 16 bytes 24 shape 3,2,2 "
	 "axes 0,2 length 2",
	 "M7"},
	{"length field 256", 10, FIELD("offset 16 bytes 24 shape 3,2,2 axes 0,2 length 256"), "M7"},
	{"dimension of 2^32", 10, FIELD("offset 16 bytes 24 shape 3,2,4294967296 axes 0,2 length 2"), "M7"},
	{"empty dimension", 10, FIELD("offset 16 bytes 24 shape 3,,2 axes 0,2 length 2"), "M7"},
	{"comma at the end of shape", 10, FIELD("offset 16 bytes 24 shape 3,2,2, axes 0,2 length 2"), "M7"},
	{"axes descend", 10, FIELD("offset 16 bytes 24 shape 3,2,2 axes 2,0 length 2"), "M7"},
	{"axis twice", 10, FIELD("offset 16 bytes 24 shape 3,2,2 axes 0,0 length 2"), "M7"},
	{"axis 8", 10, FIELD("offset 16 bytes 24 shape 3,2,2 axes 0,8 length 2"), "M7"},
	{"axis 12", 10, FIELD("offset 16 bytes 24 shape 3,2,2 axes 12 length 2"), "M7"},
	{"comma at the end of axes", 10, FIELD("offset 16 bytes 24 shape 3,2,2 axes 0, length 2"), "M7"},
	{"shard of no multiple of a page", 19, "shard 1 x bytes 8193 records 3 root " ROOT " sha256 " HEX64, "M7"},
	{"shard of one page", 19, "shard 1 x bytes 4096 records 3 root " ROOT " sha256 " HEX64, "M7"},
	{"shard above 2^44", 19, "shard 1 x bytes 17592186048512 records 3 root " ROOT " sha256 " HEX64, "M7"},
	{"shard of more than 2^40 records", 19,
	 "shard 1 x bytes 8192 records 1099511627777 root " ROOT " sha256 " HEX64, "M7"},
	{"squares of 2^128", 13, "stat moments 0 0 310 7 340282366920938463463374607431768211456", "M7"},
	{"form comes before numbers", 19, "shard 01 x bytes 8192 records 3 root " ROOT " sha256 " HEX64 " more", "M6"},
	{"groups from 1", 5, "group 1 stride 192 record 190 align 6 codec lz4 unit 512 chunk 512", "M8"},
	{"group twice", 6, "group 0 stride 64 record 60 align 4 codec raw unit 64 chunk 0", "M8"},
	{"field left out", 9, NULL, "M8"},
	{"class left out", 11, NULL, "M8"},
	{"class 2 for 1", 12, "class 2 b", "M8"},
	{"class 2^24 + 1", 12, "class 16777217 b", "M7"},
	{"shard 2^32 + 1", 19, S(4294967297, "x"), "M7"},
	{"shard left out", 18, NULL, "M8"},
	{"no fields and no groups", 4, "order -\nshard 0 x", "M8"},
	{"schema: I18", 5, "group 0 stride 192 record 193 align 6 codec lz4 unit 512 chunk 512", "M9: I18"},
	{"schema: align 13 is I19's", 5, "group 0 stride 192 record 190 align 13 codec lz4 unit 512 chunk 512",
	 "M9: I19"},
	{"schema: unknown codec", 5, "group 0 stride 192 record 190 align 6 codec zstd unit 512 chunk 512", "M9: I21"},
	{"schema: bad name", 10,
	 "field 3 9boxes group 1 kind ragged dtype bf16 layout none semantic boxes offset 16 bytes 24 shape 3,2,2 axes "
	 "0,2 length 2",
	 "M9: I23"},
	{"schema: name of 48 bytes", 10,
	 "field 3 " X8("boxbox") " group 1 kind ragged dtype bf16 layout none semantic boxes offset 16 bytes 24 shape "
				 "3,2,2 axes 0,2 length 2",
	 "M9: I23"},
	{"schema: unknown dtype", 10,
	 "field 3 boxes group 1 kind ragged dtype f8 layout none semantic boxes offset 16 bytes 24 shape 3,2,2 axes "
	 "0,2 length 2",
	 "M9: I25"},
	{"schema: unknown kind", 10,
	 "field 3 boxes group 1 kind sparse dtype bf16 layout none semantic boxes offset 16 bytes 24 shape 3,2,2 axes "
	 "0,2 length 2",
	 "M9: I26"},
	{"schema: nine dimensions", 10, FIELD("offset 16 bytes 24 shape 3,2,2,1,1,1,1,1,1 axes 0,2 length 2"),
	 "M9: I26"},
	{"schema: empty axis", 10, FIELD("offset 16 bytes 24 shape 3,0,2 axes 0,2 length 2"), "M9: I27"},
	{"schema: bytes", 10, FIELD("offset 16 bytes 25 shape 3,2,2 axes 0,2 length 2"), "M9: I28"},
	{"schema: group 2 of 2", 10,
	 "field 3 boxes group 2 kind ragged dtype bf16 layout none semantic boxes offset 16 bytes 24 shape 3,2,2 axes "
	 "0,2 length 2",
	 "M9: I29"},
	{"schema: ragged without axes", 10, FIELD("offset 16 bytes 24 shape 3,2,2 axes - length -"), "M9: I32"},
	{"schema: ragged with a length and no axes", 10, FIELD("offset 16 bytes 24 shape 3,2,2 axes - length 2"),
	 "M9: I32"},
	{"schema: ragged with axes and no length", 10, FIELD("offset 16 bytes 24 shape 3,2,2 axes 0,2 length -"),
	 "M9: I32"},
	{"schema: tensor with axes", 8,
	 "field 1 label group 1 kind tensor dtype i64 layout none semantic label offset 0 bytes 8 shape - axes 0 "
	 "length 0",
	 "M9: I32"},
	{"schema: tensor with length 0", 8,
	 "field 1 label group 1 kind tensor dtype i64 layout none semantic label offset 0 bytes 8 shape - axes - "
	 "length 0",
	 "M9: I32"},
	{"class name in lower case", 12, "class 1 zw%c3%b6lf", "M10"},
	{"class name encoded without need", 12, "class 1 %61", "M10"},
	{"class name not encoded", 12, "class 1 a/b", "M10"},
	{"class name, cut code", 12, "class 1 a%2", "M10"},
	{"class name, percent alone", 12, "class 1 %", "M10"},
	{"class name not UTF-8", 12, "class 1 %FF", "M10"},
	{"class name with NUL", 12, "class 1 a%00", "M10"},
	{"class name of 1,024 bytes", 12, "class 1 " X8(X8(X8("ab"))), NULL},
	{"class name of 1,025 bytes", 12, "class 1 " X8(X8(X8("ab"))) "c", "M10"},
	{"class name of 1,024 bytes, all of them encoded", 12, "class 1 " X8(X8(X8("%2F%2F"))), NULL},
	{"no classes", 11, NULL, "M8"},
	{"moments of a channel missing", 15, NULL, "M11"},
	{"moments of the first channel missing", 13, NULL, "M11"},
	{"moments of channel 3 of 3", 15, "stat moments 0 2 310 0 0\nstat moments 0 3 310 0 0", "M11"},
	{"channels change places", 14, "stat moments 0 2 310 0 0\nstat moments 0 1 310 0 0", "M11"},
	{"classes before moments", 13, "stat classes 1 0 5\nstat moments 0 0 310 7 1785", "M11"},
	{"moments of an i64", 13, "stat moments 1 0 5 0 0", "M11"},
	{"classes of an image", 16, "stat classes 0 0 2", "M11"},
	{"classes of field 4 of 4", 16, "stat classes 4 0 2", "M11"},
	{"classes of field 2^32 - 1", 16, "stat classes 4294967295 0 2", "M11"},
	{"classes of field 2^32, which is not field 0", 16, "stat classes 4294967296 0 2", "M11"},
	{"classes from 1", 16, NULL, "M11"},
	{"class counts too few", 17, "stat classes 1 1 2", "M11"},
	{"class counts that wrap", 17, "stat classes 1 1 18446744073709551614\nstat classes 1 2 5", "M11"},
	{"count of moments", 14, "stat moments 0 1 309 0 0", "M11"},
	{"sum of moments", 14, "stat moments 0 1 310 79051 0", "M11"},
	{"squares of moments", 14, "stat moments 0 1 310 1 256", "M11"},
	{"squares one above 255 x sum", 13, "stat moments 0 0 310 7 1786", "M11"},
	{"squares of 2^128 - 1", 13, "stat moments 0 0 310 7 340282366920938463463374607431768211455", "M11"},
	{"shard in a folder above", 19, S(1, "../x"), "M12"},
	{"shard at the root", 19, S(1, "/x"), "M12"},
	{"hidden shard", 19, S(1, "a/.x"), "M12"},
	{"three parts", 19, S(1, "a/b/c"), "M12"},
	{"part that is empty", 19, S(1, "a//c"), "M12"},
	{"folder only", 19, S(1, "a/"), "M12"},
	{"a plus sign", 19, S(1, "a+b"), "M12"},
	{"an option", 19, S(1, "-rf"), "M12"},
	{"fewer shards than said", 2, "shards 3", "M13"},
	{"more shards than said", 2, "shards 1", "M13"},
	{"records of another sum", 19, "shard 1 x bytes 8192 records 4 root " ROOT " sha256 " HEX64, "M14"},
};

TEST(each_rule_in_one_line)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_error err = {.message = "accepted"};
		char want[80] = "accepted";
		struct manifest m;
		size_t bytes;
		int rc;

		STORY("%s", rows[i].story);
		bytes = manifest(rows[i].line, rows[i].by);
		rc = read_text(bytes, &m, NULL, &err);
		if (rows[i].number) {
			snprintf(want, sizeof(want), "%s:", rows[i].number);
			if (strncmp(err.message, want, strlen(want)))
				CHECK_STR(err.message, want);
		} else {
			CHECK_STR(err.message, want);
		}
		CHECK_EQ(rc, !rows[i].number							   ? SHARD_OK
			     : !strcmp(rows[i].number, "M4") || !strcmp(rows[i].number, "M9: I21") ? SHARD_E_UNSUPPORTED
												   : SHARD_E_CORRUPT);
	}
}

TEST(lines_of_4096_bytes_and_not_more)
{
	static char longest[5000];
	struct shard_error err = {.message = ""};
	struct manifest m;

	for (int extra = 0; extra < 2; extra++) {
		memset(longest, 'x', sizeof(longest));
		memcpy(longest, "class 1 ", 8);
		longest[4095 + extra] = 0;
		CHECK_EQ(read_text(manifest(12, longest), &m, NULL, &err), SHARD_E_CORRUPT);
		STORY("%d bytes: %.60s", 4096 + extra, err.message);
		CHECK(!strncmp(err.message, extra ? "M5:" : "M10:", 3)); /* the name is too long in both */
	}
}

TEST(a_field_name_keeps_nothing_behind_it)
{
	struct manifest m;

	memset(&m, 0xff, sizeof(m));
	CHECK_EQ(read_text(manifest(-1, NULL), &m, NULL, NULL), SHARD_OK);
	CHECK_EQ(first_nonzero(m.schema.field[0].name + 5, 43), 43);
	CHECK_EQ(first_nonzero(&m.schema.field[4], sizeof(m.schema.field[4])), sizeof(m.schema.field[4]));
}

TEST(the_end_line)
{
	static const struct {
		const char *story;
		int at; /* counted from the end */
		char c;
		const char *number;
	} ends[] = {
		{"no LF at the end", 1, 'x', "M2"},
		{"XXH3 of other text", 2, 'X', "M2"},
		{"digit of the XXH3", 2, 0, "M3"},
		{"first digit of the XXH3", 33, 0, "M3"},
		{"no space", 34, '-', "M2"},
		{"digit of the SHA-256", 35, 0, "M3"},
		{"first digit of the SHA-256", 98, 0, "M3"},
		{"word", 102, 'E', "M2"},
		{"LF before it", 103, ' ', "M2"},
	};

	for (size_t i = 0; i < COUNT(ends); i++) {
		size_t bytes = manifest(-1, NULL);
		struct shard_error err = {.message = ""};
		char *c = &text[bytes - (size_t)ends[i].at];
		struct manifest m;

		STORY("%s", ends[i].story);
		*c = ends[i].c ? ends[i].c : *c == '0' ? '1' : '0';
		CHECK_EQ(read_text(bytes, &m, NULL, &err), SHARD_E_CORRUPT);
		err.message[2] = 0;
		CHECK_STR(err.message, ends[i].number);
	}
	for (size_t bytes = 0, all = manifest(-1, NULL); bytes < all; bytes++) { /* and what is cut has none */
		struct shard_error err = {.message = ""};
		struct manifest m;

		STORY("cut to %zu bytes", bytes);
		CHECK_EQ(read_text(bytes, &m, NULL, &err), SHARD_E_CORRUPT);
		err.message[2] = 0;
		CHECK_STR(err.message, bytes < 9 ? "M1" : "M2");
	}
}

TEST(the_sha256_covers_what_stands_before_the_end_line)
{
	size_t bytes = manifest(-1, NULL);
	struct manifest_end end;
	uint8_t sha256[32];

	CHECK_EQ(manifest_find_end(text, bytes, &end, NULL), SHARD_OK);
	CHECK_EQ(end.end_at, bytes - 102);
	CHECK_EQ(end.hash_at, bytes - 33);
	shard_sha256(text, end.end_at, sha256);
	CHECK_MEM(sha256, end.sha256, 32);
}

TEST(shard_names)
{
	static char long_name[403];
	static const struct {
		const char *name;
		bool good;
	} names[] = {{"0", true},     {"_", true},	   {"a/b", true},    {"A.b-c_9/Z..", true}, {"", false},
		     {".", false},    {"..", false},	   {"a/..", false},  {"a/.b", false},	    {".a", false},
		     {"-a", false},   {"a/-b", false},	   {"/", false},     {"/a", false},	    {"a/", false},
		     {"a//b", false}, {"a/b/", false},	   {"a/b/c", false}, {"a b", false},	    {"a~", false},
		     {"a%41", false}, {"\xc3\xa9", false}, {"a\\b", false},  {"a:b", false}};

	for (size_t i = 0; i < COUNT(names); i++) {
		STORY("'%s'", names[i].name);
		CHECK_EQ(manifest_name_good(names[i].name, strlen(names[i].name)), names[i].good);
	}
	CHECK(!manifest_name_good("a\0b", 3));
	memset(long_name, 'x', 402);
	long_name[200] = '/';
	CHECK(manifest_name_good(long_name, 200));
	CHECK(!manifest_name_good("x", 0));
	CHECK(manifest_name_good(long_name, 401));
	CHECK(!manifest_name_good(long_name, 402));
	long_name[200] = 'x';
	CHECK(!manifest_name_good(long_name, 201));
}

TEST_MAIN()
