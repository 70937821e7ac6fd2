/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_pages.c - header and footer page: struct to bytes and back, and I1 to I42 broken in the bytes
 *
 * A row pokes bytes at offsets of format/SHARD.md, not of a C struct, seals the pages again and
 * says which rule is broken.  NULL says that the shard is still good.
 */
#include "libshard/base/bytes.h"
#include "libshard/format/format.h"
#include "tests/test.h"

#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define FILE_BYTES UINT64_C(49152)

/* Ten records in a raw and a compressed group, with every section that there is. */
static struct pages good(void)
{
	struct pages p = {
		.major = 1,
		.minor = 3,
		.planned_records = 12,
		.plan_shard = 77,
		.record_count = 10,
		.file_bytes = FILE_BYTES,
		.section_align_log2 = 12,
		.section_count = 10,
		.schema = {.group_count = 2,
			   .field_count = 2,
			   .group = {{.record_bytes = 8, .stride = 16, .align_log2 = 4, .unit_records = 256},
				     {.codec = SHARD_LZ4,
				      .record_bytes = 60,
				      .stride = 64,
				      .align_log2 = 6,
				      .unit_records = 4,
				      .chunk_records = 4}},
			   .field = {{.name = "label",
				      .dtype = SHARD_I64,
				      .semantic = SHARD_LABEL,
				      .bytes = 8,
				      .stride = 16},
				     {.name = "image",
				      .dtype = SHARD_U8,
				      .layout = SHARD_CHW,
				      .semantic = SHARD_IMAGE,
				      .group = 1,
				      .ndim = 3,
				      .shape = {3, 4, 5},
				      .bytes = 60,
				      .stride = 64}}},
		.section = {{SHARD_SECTION_DATA, 1, 0, 4096, 160, 10, {0}},
			    {SHARD_SECTION_DATA, 1, 1, 8192, 192, 10, {0}},
			    {SHARD_SECTION_HASH, 1, 0, 12288, 8, 1, {1}},
			    {SHARD_SECTION_HASH, 1, 1, 16384, 24, 3, {2}},
			    {SHARD_SECTION_CIDX, 1, 1, 20480, 96, 3, {3}},
			    {SHARD_SECTION_KOFF, 1, 0, 24576, 88, 11, {4}},
			    {SHARD_SECTION_KBLB, 1, 0, 28672, 50, 10, {5}},
			    {SHARD_SECTION_STAT, 0, 0, 32768, 40, 1, {6}},
			    {SHARD_SECTION_MISS, 0, 0, 36864, 32, 2, {7}},
			    {SHARD_SECTION_PROV, 0, 0, 40960, 100, 1, {8}}},
	};

	for (int i = 0; i < 32; i++)
		p.plan_digest[i] = (uint8_t)(200 + i);
	return p;
}

struct pair {
	union {
		struct disk_header page;
		uint8_t b[4096];
	} h;
	union {
		struct disk_footer page;
		uint8_t b[4096];
	} f;
};

static void seal_header(struct pair *x)
{
	struct hash128 hash = checksum128(x->h.b, 4080);

	memcpy(x->h.b + 4080, hash.b, 16);
}

static void seal_footer(struct pair *x)
{
	struct hash128 hash = checksum128(x->f.b, 4080);

	memcpy(x->f.b + 4080, hash.b, 16);
}

static void encode(struct pair *x, struct pages *p)
{
	memset(x, 0xee, sizeof(*x));
	pages_encode_header(&x->h.page, p);
	seal_header(x);
	memcpy(p->header_hash, x->h.b + 4080, 16);
	pages_encode_footer(&x->f.page, p);
	seal_footer(x);
	memcpy(p->root, x->f.b + 4080, 16);
}

static int decode(const struct pair *x, struct pages *out, uint64_t file_bytes, struct shard_error *err)
{
	struct hash128 header = checksum128(x->h.b, 4080), footer = checksum128(x->f.b, 4080);

	return pages_decode(out, &x->h.page, header.b, &x->f.page, footer.b, file_bytes, err);
}

TEST(there_and_back)
{
	struct pages p = good(), back;
	struct pair x, again;

	encode(&x, &p);
	memset(&back, 0xdd, sizeof(back));
	CHECK_EQ(decode(&x, &back, FILE_BYTES, NULL), SHARD_OK);
	CHECK_EQ(back.major, 1);
	CHECK_EQ(back.minor, 3);
	CHECK_EQ(back.incompat, 0);
	CHECK_EQ(back.compat, 0);
	CHECK_EQ(back.planned_records, 12);
	CHECK_EQ(back.plan_shard, 77);
	CHECK_EQ(back.record_count, 10);
	CHECK_EQ(back.file_bytes, FILE_BYTES);
	CHECK_EQ(back.section_align_log2, 12);
	CHECK_EQ(back.section_count, 10);
	CHECK_MEM(back.plan_digest, p.plan_digest, 32);
	CHECK_MEM(back.header_hash, p.header_hash, 16);
	CHECK_MEM(back.root, p.root, 16);
	CHECK_MEM(&back.schema, &p.schema, sizeof(p.schema));
	for (uint32_t i = 0; i < 10; i++) {
		STORY("section %u", i);
		CHECK_EQ(back.section[i].type, p.section[i].type);
		CHECK_EQ(back.section[i].flags, p.section[i].flags);
		CHECK_EQ(back.section[i].group, p.section[i].group);
		CHECK_EQ(back.section[i].offset, p.section[i].offset);
		CHECK_EQ(back.section[i].bytes, p.section[i].bytes);
		CHECK_EQ(back.section[i].items, p.section[i].items);
		CHECK_MEM(back.section[i].hash, p.section[i].hash, 16);
	}
	encode(&again, &back);
	CHECK_MEM(again.h.b, x.h.b, 4096);
	CHECK_MEM(again.f.b, x.f.b, 4096);
}

/* Every number lies where SHARD.md says, read here byte by byte. */
TEST(numbers_lie_where_the_specification_says)
{
	struct pages p = good();
	struct pair x;
	static const struct {
		size_t at, bytes;
		uint64_t want;
	} header[] = {{8, 8, UINT64_C(0x0102030405060708)},
		      {0x10, 2, 1},
		      {0x12, 2, 3},
		      {0x14, 4, 4096},
		      {0x18, 8, 0},
		      {0x20, 8, 0},
		      {0x28, 8, 12},
		      {0x30, 8, 77},
		      {0x38, 4, 2},
		      {0x3c, 4, 2},
		      {0x40, 4, 12},
		      {0x44, 2, 1},
		      {0x46, 2, 1},
		      {0x50, 1, 200},
		      {0x6f, 1, 231},
		      /* group 1 */ {0x140, 8, 64},
		      {0x148, 8, 60},
		      {0x150, 4, 6},
		      {0x154, 4, 1},
		      {0x158, 4, 4},
		      {0x15c, 4, 4},
		      /* field 1 */ {0x380, 1, 'i'},
		      {0x3b0, 2, 1},
		      {0x3b2, 1, 3},
		      {0x3b3, 1, 0},
		      {0x3b4, 2, 1},
		      {0x3b6, 2, 2},
		      {0x3b8, 4, 3},
		      {0x3bc, 4, 4},
		      {0x3c0, 4, 5},
		      {0x3d8, 8, 0},
		      {0x3e0, 8, 60},
		      {0x3e8, 1, 0},
		      {0x3e9, 1, 0},
		      {0x3ea, 2, 1}},
	  footer[] = {{8, 2, 1},
		      {10, 2, 3},
		      {12, 4, 4096},
		      {0x10, 8, FILE_BYTES},
		      {0x18, 8, 10},
		      {0x20, 4, 10},
		      /* section 3 */ {0x4c0, 4, 2},
		      {0x4c4, 4, 1},
		      {0x4c8, 4, 1},
		      {0x4d0, 8, 16384},
		      {0x4d8, 8, 24},
		      {0x4e0, 8, 3},
		      {0x4f0, 1, 2}};

	encode(&x, &p);
	CHECK_MEM(x.h.b, "\x89SHR\r\n\x1a\n", 8);
	CHECK_MEM(x.f.b, "\x89SHF\r\n\x1a\n", 8);
	CHECK_MEM(x.f.b + 0x28, x.h.b + 0xff0, 16);
	for (int page = 0; page < 2; page++)
		for (size_t i = 0; i < (page ? COUNT(footer) : COUNT(header)); i++) {
			size_t at = page ? footer[i].at : header[i].at,
			       bytes = page ? footer[i].bytes : header[i].bytes;
			uint64_t got = 0;

			STORY("%s, 0x%03zx", page ? "footer" : "header", at);
			for (size_t k = bytes; k-- > 0;)
				got = got << 8 | (page ? x.f.b : x.h.b)[at + k];
			CHECK_EQ(got, page ? footer[i].want : header[i].want);
		}
}

enum { H, F, HASH_H, HASH_F }; /* page; the last two poke behind the sealing */

#define SECTION(i, at) F, 0x400 + 64 * (i) + (at)
enum { TYPE = 0, FLAGS = 4, GROUP = 8, RESERVED = 12, OFFSET = 16, LENGTH = 24, ITEMS = 32, RESERVED2 = 40, HASH = 48 };
#define GROUP(i, at) H, 0x100 + 64 * (i) + (at)
#define FIELD(i, at) H, 0x300 + 128 * (i) + (at)

static const struct {
	const char *story, *number;
	struct {
		int page;
		size_t at, bytes;
		uint64_t value;
	} poke[5];
} rows[] = {
	{"as it is", NULL, {{0, 0, 0, 0}}},
	{"header magic", "I2", {{H, 0, 1, 9}}},
	{"header magic, last byte", "I2", {{H, 7, 1, 0}}},
	{"a flipped bit that nobody sealed", "I3", {{HASH_H, 0x900, 1, 1}}},
	{"a flipped bit of the version", "I3", {{HASH_H, 0x10, 1, 3}}},
	{"header hash itself", "I3", {{HASH_H, 0xff0, 1, 0}}},
	{"version 2", "I7", {{H, 0x10, 2, 2}}},
	{"version 2 comes before a bad footer", "I7", {{H, 0x10, 2, 2}, {F, 0, 1, 9}}},
	{"version 0", "I7", {{H, 0x10, 2, 0}}},
	{"footer magic", "I4", {{F, 3, 1, 'R'}}},
	{"footer hash", "I5", {{HASH_F, 0x18, 1, 9}}},
	{"footer hash itself", "I5", {{HASH_F, 0xfff, 1, 0xaa}}},
	{"endian tag turned round", "I6", {{H, 8, 8, UINT64_C(0x0807060504030201)}}},
	{"footer of version 2", "I7", {{F, 8, 2, 2}}},
	{"another minor in the footer", "I7", {{F, 10, 2, 4}}},
	{"page bytes of the header", "I7", {{H, 0x14, 4, 8192}}},
	{"page bytes of the footer", "I7", {{F, 12, 4, 0}}},
	{"file size", "I8", {{F, 0x10, 8, FILE_BYTES + 4096}}},
	{"the header of another file", "I9", {{H, 0x30, 8, 78}, {F, 0x28, 1, 0}}},
	{"incompat bit 0", "I10", {{H, 0x18, 8, 1}}},
	{"incompat bit 63", "I10", {{H, 0x18, 8, UINT64_C(1) << 63}}},
	{"compat bits are for verify", NULL, {{H, 0x20, 8, UINT64_MAX}}},
	{"leaf hash 2", "I12", {{H, 0x44, 2, 2}}},
	{"table hash 0", "I12", {{H, 0x46, 2, 0}}},
	{"header: first reserved byte", "I13", {{H, 0x48, 1, 1}}},
	{"header: last byte before the groups", "I13", {{H, 0xff, 1, 1}}},
	{"header: last reserved byte of group 1", "I13", {{H, 0x17f, 1, 1}}},
	{"header: group 2, which is not used", "I13", {{H, 0x180, 1, 1}}},
	{"header: group 7, last byte", "I13", {{H, 0x2ff, 1, 1}}},
	{"header: first reserved byte of a field", "I13", {{FIELD(1, 108), 1, 1}}},
	{"header: field 2, which is not used", "I13", {{FIELD(2, 0), 1, 'x'}}},
	{"header: last byte of field 23", "I13", {{FIELD(23, 127), 1, 1}}},
	{"header: last reserved byte", "I13", {{H, 0xfef, 1, 1}}},
	{"footer: reserved behind the counts", "I13", {{F, 0x27, 1, 1}}},
	{"footer: first byte behind the header hash", "I13", {{F, 0x38, 1, 1}}},
	{"footer: last byte before the sections", "I13", {{F, 0x3ff, 1, 1}}},
	{"footer: undefined flag", "I13", {{SECTION(9, FLAGS), 4, 2}}},
	{"footer: reserved of a section", "I13", {{SECTION(0, RESERVED), 4, UINT64_C(1) << 31}}},
	{"footer: second reserved of a section", "I13", {{SECTION(9, RESERVED2), 8, UINT64_C(1) << 63}}},
	{"footer: hash of DATA", "I13", {{SECTION(1, HASH) + 15, 1, 1}}},
	{"footer: section 10, which is not used", "I13", {{SECTION(10, 0), 1, 1}}},
	{"footer: last byte of section 31", "I13", {{SECTION(31, 63), 1, 1}}},
	{"footer: last reserved byte", "I13", {{F, 0xfef, 1, 1}}},
	{"no groups", "I13", {{H, 0x38, 4, 0}}}, /* their slots hold something */
	{"9 groups", "I14", {{H, 0x38, 4, 9}}},
	{"2^32 - 1 groups", "I14", {{H, 0x38, 4, UINT32_MAX}}},
	{"25 fields", "I14", {{H, 0x3c, 4, 25}}},
	{"33 sections", "I14", {{F, 0x20, 4, 33}}},
	{"section align 4,096 / 2", "I15", {{H, 0x40, 4, 11}}},
	{"section align 4 MiB", "I15", {{H, 0x40, 4, 22}}},
	{"section align 2^(2^32 - 1)", "I15", {{H, 0x40, 4, UINT32_MAX}}},
	{"2^40 records planned", NULL, {{H, 0x28, 8, UINT64_C(1) << 40}}},
	{"one more", "I16", {{H, 0x28, 8, (UINT64_C(1) << 40) + 1}}},
	{"as many planned as there are", NULL, {{H, 0x28, 8, 10}}},
	{"fewer", "I17", {{H, 0x28, 8, 9}}},
	{"record bytes 0", "I18", {{GROUP(0, 8), 8, 0}}},
	{"a codec from the future", "I21", {{GROUP(1, 20), 4, 7}}},
	{"dtype above 8 bits", "I25", {{FIELD(0, 48), 2, 0x101}}},
	{"layout above 8 bits", "I26", {{FIELD(0, 54), 2, 0x101}}},
	{"semantic above 8 bits", "I26", {{FIELD(0, 106), 2, 0x101}}},
	{"field of group 256", "I29", {{FIELD(0, 52), 2, 0x100}}},
	{"unknown section, critical", "I34", {{SECTION(9, TYPE), 4, 200}, {SECTION(9, FLAGS), 4, 1}}},
	{"unknown section", NULL, {{SECTION(9, TYPE), 4, 200}}},
	{"section of type 0, critical", "I34", {{SECTION(0, TYPE), 4, 0}}},
	{"unknown and critical comes before the order",
	 "I34",
	 {{SECTION(9, TYPE), 4, 9}, {SECTION(9, FLAGS), 4, 1}, {SECTION(0, GROUP), 4, 1}}},
	{"two sections change places", "I35", {{SECTION(7, TYPE), 4, 7}, {SECTION(8, TYPE), 4, 6}}},
	{"a section twice", "I35", {{SECTION(8, TYPE), 4, 6}}},
	{"DATA of group 2 of 2", "I35", {{SECTION(1, GROUP), 4, 2}}},
	{"keys of group 1", "I35", {{SECTION(5, GROUP), 4, 1}}},
	{"unknown section of group 1", "I35", {{SECTION(9, TYPE), 4, 200}, {SECTION(9, GROUP), 4, 1}}},
	{"no HASH for group 1", "I36", {{SECTION(3, TYPE), 4, 3}, {SECTION(3, GROUP), 4, 0}}},
	{"an index for the raw group", "I36", {{SECTION(4, GROUP), 4, 0}}},
	{"keys without offsets",
	 "I36",
	 {{SECTION(5, TYPE), 4, 5},
	  {SECTION(6, TYPE), 4, 6},
	  {SECTION(7, TYPE), 4, 7},
	  {SECTION(8, TYPE), 4, 8},
	  {SECTION(9, TYPE), 4, 200}}},
	{"a section one page late", "I37", {{SECTION(9, OFFSET), 8, 45056}}},
	{"a section on the header", "I37", {{SECTION(0, OFFSET), 8, 0}}},
	{"a section at 2^64 - 4096", "I37", {{SECTION(9, OFFSET), 8, -(uint64_t)4096}}},
	{"a section of 2^64 - 1 bytes", "I37", {{SECTION(9, LENGTH), 8, UINT64_MAX}}},
	{"a length that wraps to the right end", "I37", {{SECTION(0, LENGTH), 8, (uint64_t)0 - 4096 + 160}}},
	{"the last section up to the footer", NULL, {{SECTION(9, LENGTH), 8, 4096}}},
	{"and one byte into it", "I37", {{SECTION(9, LENGTH), 8, 4097}}},
	{"the last section ends a page too early", "I37", {{SECTION(9, LENGTH), 8, 0}}},
	{"another alignment than the sections have", "I37", {{H, 0x40, 4, 13}}},
	{"items of DATA", "I38", {{SECTION(0, ITEMS), 8, 11}}},
	{"items of compressed DATA", "I38", {{SECTION(1, ITEMS), 8, 9}}},
	{"length of raw DATA", "I38", {{SECTION(0, LENGTH), 8, 176}}},
	{"length of compressed DATA is the chunks' affair", NULL, {{SECTION(1, LENGTH), 8, 191}}},
	{"one record fewer", "I38", {{F, 0x18, 8, 9}}},
	{"items of HASH", "I39", {{SECTION(2, ITEMS), 8, 2}}},
	{"length of HASH", "I39", {{SECTION(3, LENGTH), 8, 32}}},
	{"smaller units", "I39", {{GROUP(0, 24), 4, 9}}},
	{"items of CIDX", "I40", {{SECTION(4, ITEMS), 8, 4}}},
	{"length of CIDX", "I40", {{SECTION(4, LENGTH), 8, 64}}},
	{"DATA of the last group comes before HASH of the first",
	 "I38",
	 {{SECTION(2, ITEMS), 8, 2}, {SECTION(1, ITEMS), 8, 9}}},
	{"HASH of the last group comes before CIDX", "I39", {{SECTION(4, ITEMS), 8, 2}, {SECTION(3, ITEMS), 8, 9}}},
	{"items of KOFF", "I41", {{SECTION(5, ITEMS), 8, 10}}},
	{"length of KOFF", "I41", {{SECTION(5, LENGTH), 8, 80}}},
	{"items of KBLB", "I41", {{SECTION(6, ITEMS), 8, 11}}},
	{"items of MISS", "I42", {{SECTION(8, ITEMS), 8, 3}}},
	{"items of MISS, so many that 16 times it wraps to the length",
	 "I42",
	 {{SECTION(8, ITEMS), 8, (UINT64_C(1) << 60) + 2}}},
	{"items of PROV", "I42", {{SECTION(9, ITEMS), 8, 0}}},
};

static bool for_a_newer_reader(const char *number, const char *story)
{
	static const char *const numbers[] = {"I10", "I12", "I21", "I34"};

	for (size_t i = 0; i < COUNT(numbers); i++)
		if (!strcmp(number, numbers[i]))
			return true;
	return !strcmp(number, "I7") && strstr(story, "version");
}

TEST(each_rule_of_the_pages)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_error err = {.message = "accepted"};
		struct pages p = good(), out;
		struct pair x;
		char want[16] = "accepted";
		int rc;

		STORY("%s", rows[i].story);
		encode(&x, &p);
		for (int late = 0; late < 2; late++) {
			for (size_t k = 0; k < COUNT(rows[i].poke); k++) {
				int page = rows[i].poke[k].page;

				if ((page >= HASH_H) == late && rows[i].poke[k].bytes)
					memcpy((page == H || page == HASH_H ? x.h.b : x.f.b) + rows[i].poke[k].at,
					       &rows[i].poke[k].value, rows[i].poke[k].bytes);
			}
			if (late)
				break;
			seal_header(&x);
			/* who changes the header names it in the footer, but for I9 */
			if (!rows[i].number || strcmp(rows[i].number, "I9"))
				memcpy(x.f.b + 0x28, x.h.b + 0xff0, 16);
			seal_footer(&x);
		}
		rc = decode(&x, &out, FILE_BYTES, &err);
		if (rows[i].number)
			snprintf(want, sizeof(want), "%s:", rows[i].number);
		err.message[rows[i].number ? strlen(want) : strlen(err.message)] = 0;
		CHECK_STR(err.message, want);
		CHECK_EQ(!rc, !rows[i].number);
		if (rc)
			CHECK_EQ(rc, for_a_newer_reader(rows[i].number, rows[i].story) ? SHARD_E_UNSUPPORTED
										       : SHARD_E_CORRUPT);
	}
}

/* 2^40 records of 2^30 bytes are 2^70, which wraps to a length of 0. */
TEST(records_times_stride_that_wrap_to_nothing)
{
	struct pages p =
			     {
				     .major = 1,
				     .planned_records = UINT64_C(1) << 40,
				     .record_count = UINT64_C(1) << 40,
				     .file_bytes = 8192,
				     .section_align_log2 = 12,
				     .section_count = 2,
				     .schema = {.group_count = 1,
						.field_count = 1,
						.group = {{.record_bytes = 1, .stride = 1u << 30, .unit_records = 1}},
						.field = {{.name = "x", .dtype = SHARD_U8, .bytes = 1}}},
				     .section = {{SHARD_SECTION_DATA, 1, 0, 4096, 0, UINT64_C(1) << 40, {0}},
						 {SHARD_SECTION_HASH, 1, 0, 4096, 0, UINT64_C(1) << 40, {0}}},
			     },
		     out;
	struct shard_error err;
	struct pair x;

	encode(&x, &p);
	CHECK_EQ(decode(&x, &out, 8192, &err), SHARD_E_CORRUPT);
	CHECK(!strncmp(err.message, "I38:", 4));
}

TEST(sizes_that_a_shard_can_have)
{
	static const struct {
		uint64_t bytes;
		bool good;
	} sizes[] = {{0, false},
		     {4096, false},
		     {8191, false},
		     {8192, true},
		     {8193, false},
		     {12288, true},
		     {UINT64_C(1) << 44, true},
		     {(UINT64_C(1) << 44) + 4096, false},
		     {-(uint64_t)4096, false},
		     {UINT64_MAX, false}};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct shard_error err = {.message = ""};

		STORY("%" PRIu64 " bytes", sizes[i].bytes);
		CHECK_EQ(pages_check_size(sizes[i].bytes, &err), sizes[i].good ? SHARD_OK : SHARD_E_CORRUPT);
		CHECK(sizes[i].good || !strncmp(err.message, "I1: ", 4));
	}
}

TEST(compat_bits_forbid_to_call_it_verified)
{
	struct pages p = good();

	CHECK_EQ(pages_check_compat(&p, NULL), SHARD_OK);
	p.compat = UINT64_C(1) << 40;
	CHECK_EQ(pages_check_compat(&p, NULL), SHARD_E_UNSUPPORTED);
}

TEST(sections_are_found_and_start_aligned)
{
	struct pages p = good();

	CHECK(pages_find(&p, SHARD_SECTION_HASH, 1) == &p.section[3]);
	CHECK(pages_find(&p, SHARD_SECTION_PROV, 0) == &p.section[9]);
	CHECK(!pages_find(&p, SHARD_SECTION_CIDX, 0));
	CHECK(!pages_find(&p, 9, 0));
	CHECK_EQ(pages_section_start(12, 4096), 4096);
	CHECK_EQ(pages_section_start(12, 4097), 8192);
	CHECK_EQ(pages_section_start(21, 4096), 1u << 21);
}

TEST_MAIN()
