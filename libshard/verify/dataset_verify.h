/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_verify.h - the rules of a manifest that only verify checks
 */
#ifndef SHARD_VERIFY_DATASET_VERIFY_H
#define SHARD_VERIFY_DATASET_VERIFY_H

#include "libshard/store/read/dataset.h"

/* M15 to M17 and D7. */
int dataset_verify_manifest(const struct shard_dataset *ds, struct shard_error *err);
/* D6 */
int dataset_check_sha256(const char *path, const uint8_t got[32], const uint8_t want[32], struct shard_error *err);

#endif
