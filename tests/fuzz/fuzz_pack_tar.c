/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pack_tar.c - any bytes as a tar archive, as they are and with right checksums
 *
 * Members must lie within the archive, in order and apart, and their names must lead nowhere else.
 */
#include "tests/fuzz/fuzz.h"
#include "tools/shardpack/parse/parse.h"

static void check_name(const struct tar_member *m)
{
	size_t n;

	must(strlen(m->name) == m->name_bytes && m->name_bytes <= TAR_NAME_BYTES_MAX,
	     "a name has another length than it says");
	for (const char *at = m->name; m->name_bytes; at += n + 1) {
		n = strcspn(at, "/");
		must(n && !(n == 1 && at[0] == '.') && !(n == 2 && at[0] == '.' && at[1] == '.'),
		     "a name has a component that is none");
		if (!at[n])
			break;
	}
}

static void use_archive(const uint8_t *data, size_t size)
{
	struct bytes all = {data, size};
	char why[TAR_WHY_BYTES] = "";
	struct tar *t = calloc(1, sizeof(*t));
	struct tar_member *m = malloc(sizeof(*m));
	uint64_t end = 0;
	enum tar_status status;

	must(t && m, "no memory");
	*t = (struct tar){.bytes = size, .read = read_bytes, .context = &all, .why = why};
	while ((status = tar_next(t, m)) == TAR_MEMBER) {
		must(m->header_offset >= end && m->offset == m->header_offset + TAR_BLOCK_BYTES, "members overlap");
		must(m->offset <= size && m->bytes <= size - m->offset, "a member lies outside of the archive");
		must(m->name_bytes || m->kind != TAR_FILE, "a file has no name");
		end = m->offset + m->bytes;
		check_name(m);
	}
	if (status == TAR_BAD)
		must(why[0] && memchr(why, 0, sizeof(why)), "a refusal has no reason");
	free(m);
	free(t);
}

/* Right checksums wherever a header may stand. */
static void seal(uint8_t *data, size_t size)
{
	for (size_t at = 0; at + TAR_BLOCK_BYTES <= size; at += TAR_BLOCK_BYTES) {
		uint32_t sum = 0;
		char text[16];

		if (!data[at])
			continue;
		memset(data + at + 148, ' ', 8);
		for (size_t i = 0; i < TAR_BLOCK_BYTES; i++)
			sum += data[at + i];
		snprintf(text, sizeof(text), "%06o", sum);
		memcpy(data + at + 148, text, 7);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *sealed = malloc(size + 1);

	must(sealed, "no memory");
	use_archive(data, size);
	memcpy(sealed, data, size);
	seal(sealed, size);
	use_archive(sealed, size);
	free(sealed);
	return 0;
}

/* ---- libFuzzer ---- */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	static const char types[] = "0157LKxgS2";
	static const char *const words[] = {
		"19 path=a/../../../b\n", "20 size=99999999999\n", "GNU.sparse.", "../", "77777777777", "ustar"};
	struct dice d = dice(seed);
	char number[32];
	size_t block =
		size / TAR_BLOCK_BYTES ? (size_t)(dice_draw(&d) % (size / TAR_BLOCK_BYTES)) * TAR_BLOCK_BYTES : 0;

	switch (size >= TAR_BLOCK_BYTES ? dice_roll(&d, 5) : 0) {
	case 1:
		data[block + 156] = (uint8_t)types[dice_roll(&d, sizeof(types) - 1)];
		break;
	case 2:
		snprintf(number, sizeof(number), "%011" PRIo64, dice_draw(&d) % (3 * size));
		memcpy(data + block + 124, number, 11);
		break;
	case 3: {
		const char *word = words[dice_roll(&d, 6)];
		size_t at = block + dice_roll(&d, TAR_BLOCK_BYTES - 32);

		memcpy(data + at, word, strlen(word));
		break;
	}
	default:
		size = LLVMFuzzerMutate(data, size, size_max);
	}
	seal(data, size);
	return size;
}
