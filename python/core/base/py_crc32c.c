/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_crc32c.c - CRC-32C of bytes, which TFRecord has and Python's own library lacks
 *
 * Castagnoli's polynomial, reflected: 0x82f63b78 (RFC 3720, 12.1).
 */
#include "python/core/base/py_base.h"

#include <pthread.h>
#include <string.h>

#include "libshard/base/cpu.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t table[8][256]; /* const after once; [k][b]: byte b, and k zero bytes behind it */

static void prepare(void)
{
	for (uint32_t b = 0; b < 256; b++) {
		table[0][b] = b;
		for (int bit = 0; bit < 8; bit++)
			table[0][b] = table[0][b] >> 1 ^ (table[0][b] & 1 ? UINT32_C(0x82f63b78) : 0);
	}
	for (uint32_t b = 0; b < 256; b++)
		for (int k = 1; k < 8; k++)
			table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 255];
}

/* Eight bytes at a time, by tables: the twin of the processor's instruction. */
static uint32_t by_table(uint32_t crc, const uint8_t *at, size_t bytes)
{
	uint32_t low, high;

	for (; bytes >= 8; bytes -= 8, at += 8) {
		low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
		high = (uint32_t)at[4] | (uint32_t)at[5] << 8 | (uint32_t)at[6] << 16 | (uint32_t)at[7] << 24;
		crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
		      table[3][high & 255] ^ table[2][high >> 8 & 255] ^ table[1][high >> 16 & 255] ^
		      table[0][high >> 24];
	}
	while (bytes--)
		crc = crc >> 8 ^ table[0][(crc ^ *at++) & 255];
	return crc;
}

#ifdef __x86_64__
/* crc32 comes with sse4.2, except by Zig's compiler: it disables each feature that nobody names. */
__attribute__((target("sse4.2,crc32"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *at, size_t bytes)
{
	uint64_t wide = crc, word;

	for (; bytes >= 8; bytes -= 8, at += 8) {
		memcpy(&word, at, 8);
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	while (bytes--)
		crc = __builtin_ia32_crc32qi(crc, *at++);
	return crc;
}
#endif

bool crc32c_is_fast(void)
{
	return cpu_has_crc32();
}

static uint32_t crc_of(const uint8_t *at, size_t bytes, bool slow)
{
	pthread_once(&once, prepare);
#ifdef __x86_64__
	if (!slow && crc32c_is_fast())
		return ~by_instruction(UINT32_MAX, at, bytes);
#else
	(void)slow;
#endif
	return ~by_table(UINT32_MAX, at, bytes);
}

uint32_t crc32c_of(const uint8_t *at, size_t bytes)
{
	return crc_of(at, bytes, false);
}

PyObject *crc32c(PyObject *Py_UNUSED(self), PyObject *args)
{
	Py_buffer in;
	Py_ssize_t first = 0, last = PY_SSIZE_T_MAX;
	uint32_t crc;
	const uint8_t *at;
	size_t bytes;
	int slow = 0;

	if (!PyArg_ParseTuple(args, "y*|nnp", &in, &first, &last, &slow))
		return NULL;
	/* As a slice is cut, but for negative numbers. */
	last = last < in.len ? last : in.len;
	first = first < 0 ? 0 : first;
	bytes = first < last ? (size_t)(last - first) : 0;
	at = (const uint8_t *)in.buf + (bytes ? first : 0);
	Py_BEGIN_ALLOW_THREADS crc = crc_of(at, bytes, slow);
	Py_END_ALLOW_THREADS PyBuffer_Release(&in);
	return PyLong_FromUnsignedLong(crc);
}
