/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_portable.h - the inner loops of the resampler in C, for every processor
 */
#ifndef SHARD_IMAGE_RESIZE_PORTABLE_H
#define SHARD_IMAGE_RESIZE_PORTABLE_H

#include "tools/shardpack/images/resize_passes.h"

extern const struct resize_passes resize_passes_portable;

#endif
