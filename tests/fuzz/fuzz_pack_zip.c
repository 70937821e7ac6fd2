/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pack_zip.c - any bytes as a ZIP archive
 *
 * What is a member must lie within the archive, before its directory.
 */
#include "tests/fuzz/fuzz.h"
#include "tools/shardpack/parse/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes all = {data, size};
	char why[ZIP_WHY_BYTES] = "";
	struct zip z = {.bytes = size, .read = read_bytes, .context = &all, .why = why};
	struct zip_member *m = malloc(sizeof(*m));
	enum zip_status status;
	size_t count = 0;

	must(m, "no memory");
	while ((status = zip_next(&z, m)) == ZIP_MEMBER) {
		must(m->method == ZIP_STORED || m->method == ZIP_DEFLATED, "a member is packed in no known way");
		must(m->offset <= size && m->packed_bytes <= size - m->offset, "a member lies outside of the archive");
		must(m->method != ZIP_STORED || m->bytes == m->packed_bytes, "a stored member has two sizes");
		must(m->name_bytes && strlen(m->name) == m->name_bytes, "a name has another length than it says");
		must(++count <= size / 46, "there are more members than fit");
	}
	if (status == ZIP_BAD)
		must(why[0] && memchr(why, 0, sizeof(why)), "a refusal has no reason");
	free(m);
	return 0;
}

/* ---- libFuzzer ---- */

/* Numbers and signatures where records have them, so that more gets past the first look. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	static const char *const marks[] = {"PK\1\2", "PK\3\4",		  "PK\5\6",    "PK\6\6",
					    "PK\6\7", "\xff\xff\xff\xff", "\1\0\x18\0"};
	struct dice d = dice(seed);
	uint32_t number = (uint32_t)(dice_draw(&d) % (size + 64));
	size_t at = size >= 8 ? (size_t)(dice_draw(&d) % (size - 7)) : 0;

	switch (size >= 8 ? dice_roll(&d, 4) : 0) {
	case 1:
		memcpy(data + at, marks[dice_roll(&d, 7)], 4);
		return size;
	case 2:
		memcpy(data + at, &number, 4);
		return size;
	default:
		return LLVMFuzzerMutate(data, size, size_max);
	}
}
