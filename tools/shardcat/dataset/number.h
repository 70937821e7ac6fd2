/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.h - one element of any dtype as a number
 *
 * `data` may have any alignment.  Pure.
 */
#ifndef SHARD_DATASET_NUMBER_H
#define SHARD_DATASET_NUMBER_H

#include <stdint.h>

#define NUMBER_CHARS 32

/* Integers in full, floating point to the digits that its dtype has, bool as true or false. */
const char *number_text(char out[NUMBER_CHARS], uint32_t dtype, const void *data);

/* Of an integer dtype: the value, or, of u64, its bits. */
int64_t number_integer(uint32_t dtype, const void *data);

/* The nearest double: exact but for integers past 2^53. */
double number_double(uint32_t dtype, const void *data);

/* As NumPy writes it, such as "<f4".  bf16, which it does not know, is its bits as "<u2". */
const char *number_npy_name(uint32_t dtype);

#endif
