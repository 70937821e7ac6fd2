/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources.c - the table of sources
 */
#include "tools/shardpack/sources/sources.h"

#include "tools/shardpack/plan/recipe.h"
#include "tools/shardpack/sources/source.h"

const struct source *const source_table[SOURCE_COUNT] = {
	[SOURCE_IMAGES] = &source_images, [SOURCE_ARRAY] = &source_array, [SOURCE_RAW] = &source_raw,
	[SOURCE_TOKENS] = &source_tokens, [SOURCE_CIFAR] = &source_cifar, [SOURCE_MNIST] = &source_mnist,
};
