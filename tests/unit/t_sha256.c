/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_sha256.c - SHA-256: the vectors of FIPS 180-4, the SHA instructions against portable C, and
 * both against libcrypto
 *
 * LDLIBS: -lcrypto
 */
#include <openssl/evp.h>

#include "libshard/base/words.h"
#include "libshard/format/format.h"
#include "tests/test.h"

static uint32_t random_state = 1;

static uint32_t random32(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state;
}

/*
 * Both ways a stream may be folded; the second row is missing where the processor lacks the
 * instructions.
 */
static size_t ways(sha256_blocks_fn *way[2])
{
	way[0] = sha256_blocks_portable;
	way[1] = sha256_blocks_ni();
	return way[1] ? 2 : 1;
}

static void libcrypto(const void *data, size_t data_bytes, uint8_t digest[SHA256_BYTES])
{
	unsigned n = 0;

	CHECK_EQ(EVP_Digest(data, data_bytes, digest, &n, EVP_sha256(), NULL), 1);
	CHECK_EQ(n, SHA256_BYTES);
}

static void check_digest(const uint8_t digest[SHA256_BYTES], const char *want)
{
	char hex[2 * SHA256_BYTES + 1];

	hex_from_bytes(hex, digest, SHA256_BYTES);
	CHECK_STR(hex, want);
}

TEST(vectors_of_fips_180_4)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
		{"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopq"
		 "rst"
		 "nopqrstu",
		 "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
	};
	sha256_blocks_fn *way[2];
	size_t way_count = ways(way);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t j = 0; j < way_count; j++) {
			uint8_t digest[SHA256_BYTES];
			struct sha256 s;

			STORY("\"%.16s\", way %zu", rows[i].text, j);
			sha256_init(&s);
			s.blocks = way[j];
			sha256_update(&s, rows[i].text, strlen(rows[i].text));
			sha256_final(&s, digest);
			check_digest(digest, rows[i].want);
		}
}

TEST(a_million_times_a)
{
	sha256_blocks_fn *way[2];
	size_t way_count = ways(way);
	char block[1000];

	memset(block, 'a', sizeof(block));
	for (size_t j = 0; j < way_count; j++) {
		uint8_t digest[SHA256_BYTES];
		struct sha256 s;

		STORY("way %zu", j);
		sha256_init(&s);
		s.blocks = way[j];
		for (int i = 0; i < 1000; i++)
			sha256_update(&s, block, sizeof(block));
		sha256_final(&s, digest);
		check_digest(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	}
}

TEST(every_length_to_300_equals_libcrypto)
{
	uint8_t data[300], ours[SHA256_BYTES], theirs[SHA256_BYTES];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)random32();
	for (size_t n = 0; n <= sizeof(data); n++) {
		struct sha256 s;

		STORY("%zu bytes", n);
		sha256_init(&s);
		sha256_update(&s, data, n);
		sha256_final(&s, ours);
		libcrypto(data, n, theirs);
		CHECK_MEM(ours, theirs, SHA256_BYTES);
	}
}

TEST(any_split_equals_libcrypto)
{
	enum { LIMIT = 20000 };
	static uint8_t data[LIMIT + 64];
	uint8_t ours[SHA256_BYTES], theirs[SHA256_BYTES];
	sha256_blocks_fn *way[2];
	size_t way_count = ways(way);

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)random32();
	for (int round = 0; round < 2000; round++) {
		const uint8_t *p = data + random32() % 64; /* any alignment */
		size_t total = random32() % LIMIT, done = 0;
		struct sha256 s;

		STORY("round %d, %zu bytes", round, total);
		sha256_init(&s);
		s.blocks = way[(size_t)round % way_count];
		while (done < total) {
			size_t n = random32() % (random32() % 4 ? 150 : 3000);

			n = n < total - done ? n : total - done;
			sha256_update(&s, p + done, n);
			done += n;
		}
		sha256_final(&s, ours);
		libcrypto(p, total, theirs);
		CHECK_MEM(ours, theirs, SHA256_BYTES);
	}
}

TEST(sha_instructions_equal_portable_on_any_state)
{
	sha256_blocks_fn *way[2];
	static uint8_t data[64 * 40 + 16];

	if (ways(way) < 2)
		SKIP("this processor has no SHA instructions");
	for (int round = 0; round < 2000; round++) {
		const uint8_t *p = data + random32() % 16;
		size_t block_count = random32() % 41;
		uint32_t a[8], b[8];

		STORY("round %d, %zu blocks", round, block_count);
		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = (uint8_t)random32();
		for (int i = 0; i < 8; i++)
			a[i] = b[i] = random32();
		way[0](a, p, block_count);
		way[1](b, p, block_count);
		CHECK_MEM(a, b, sizeof(a));
	}
}

TEST(length_beyond_32_bits_of_bits)
{
	/* 2^29 + 1 bytes: the count of bits needs the high word of the padding. */
	enum { STEP = 1 << 20 };
	static uint8_t zeros[STEP];
	uint8_t ours[SHA256_BYTES], theirs[SHA256_BYTES];
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	struct sha256 s;

	sha256_init(&s);
	CHECK_EQ(EVP_DigestInit_ex(c, EVP_sha256(), NULL), 1);
	for (int i = 0; i < (1 << 29) / STEP; i++) {
		sha256_update(&s, zeros, STEP);
		CHECK_EQ(EVP_DigestUpdate(c, zeros, STEP), 1);
	}
	sha256_update(&s, zeros, 1);
	CHECK_EQ(EVP_DigestUpdate(c, zeros, 1), 1);
	sha256_final(&s, ours);
	CHECK_EQ(EVP_DigestFinal_ex(c, theirs, NULL), 1);
	EVP_MD_CTX_free(c);
	CHECK_MEM(ours, theirs, SHA256_BYTES);
}

TEST_MAIN()
