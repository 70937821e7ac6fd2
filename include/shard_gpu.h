/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_gpu.h - batches in the memory of a GPU, and the pool there
 *
 * A loader of shard.h copies its batches to a GPU ahead of the trainer: shard_loader_next_device()
 * instead of shard_loader_next(), shard_loader_release_after() instead of shard_loader_release().
 * The first comment of shard.h holds for this header, too.
 *
 * A stream is a cudaStream_t or a CUstream.  NULL is the legacy default stream.  A loader takes it
 * as that of its own GPU, whichever GPU is current in the calling thread.
 */
#ifndef SHARD_GPU_H
#define SHARD_GPU_H

#include "shard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- which GPU --------------------------------------------------------------------------- */

/*
 * For `device` and `stream` in struct shard_loader_gpu.  They fix the GPU when the loader is
 * opened, and hold its context until close.  It does not matter which GPU is current in a thread
 * later.  Name the GPU in every program that has several GPUs or several threads.
 *
 * SHARD_GPU(n) is GPU n, as cudaGetDevice() counts: its primary context, which is that of the
 * runtime API and of PyTorch.  If stream, or else the calling thread, has another context on
 * that GPU, it is that one.  ARGUMENT if stream is on another GPU.
 *
 * SHARD_GPU_OF_STREAM is the GPU of stream.  With a stream of NULL that is the current GPU
 * of the calling thread, or the first GPU if it has chosen none.
 *
 * With 0 the loader is for batches in host memory, until the first call names a stream.  The GPU of
 * that stream is then the loader's.  NULL is refused there with ARGUMENT if the thread has chosen
 * none of several GPUs.
 *
 * Only the process that opened the GPU can use it.  After a fork, open a loader in the child.
 */
#define SHARD_GPU(n)	    ((uint32_t)(n) + 1)
#define SHARD_GPU_OF_STREAM UINT32_MAX

/* ---- batches ---------------------------------------------------------------------------- */

/*
 * As shard_loader_next(), with the rows in the memory of the GPU that `stream` belongs to: kernels
 * that are queued on `stream` after this call find the batch there.  Batches are copied ahead, on a
 * stream of the loader's own.  Only group[].data and field[].data are addresses of the GPU.  record
 * and row_flags stay in host memory.
 *
 * The GPU checks the records that it reads in the page cache (see SHARD_PIN_NOTHING), if all of their
 * unit comes to the same batch or slab of a pool, and the dataset was opened with SHARD_CHECK_DEVICE
 * or SHARD_CHECK_ALWAYS.  It hashes them in their place there, each time.  This call waits until the
 * results of the batch have come back, and so for its copy; with a pool, for those of the slabs that
 * the batch is put together from.  That copy waits for work in front of the release_after that gave
 * back the memory, so no such work may wait for what the caller does later.  Damage is then what it
 * is in host memory: CORRUPT, or rows that are substituted or masked.  DEVICE if the GPU does not
 * check, or if what is sound in host memory arrives damaged twice.  Threads check all other records,
 * as they copy them, and this call waits for no copy of a batch that has only such records.  With
 * SHARD_CHECK_FIRST threads check all records, and with SHARD_CHECK_NEVER nobody does.
 *
 * All streams given to one loader belong to one context: the runtime API's, PyTorch's, or the
 * caller's own, which must live until close.
 *
 * UNSUPPORTED if the machine has no driver or no GPU; shard_loader_next() then works.  DEVICE if
 * the driver refuses.  ARGUMENT if all device slots are lent, or if `stream` is being captured into
 * a CUDA graph; docs/GPU.md says how to use graphs.  After the first batch from this call,
 * shard_loader_next() of the same loader fails.
 */
SHARD_API int shard_loader_next_device(struct shard_loader *l, void *stream, struct shard_batch *batch,
				       struct shard_error *err);

/*
 * Do what the first shard_loader_next_device() does before it waits for a batch: allocate memory of
 * the host and the GPU, start threads and reads.  If a program uses shard_loader_wait(), it calls
 * this first.  Then shard_loader_next_device() need not wait for the first batch, but may wait for
 * its check.  Fails as shard_loader_next_device() does.  May be called at any time; later calls do
 * nothing.
 */
SHARD_API int shard_loader_begin_device(struct shard_loader *l, void *stream, struct shard_error *err);

/*
 * Give a batch back once all work is done that was queued on `stream` before this call.  Returns at
 * once; the batch's pointers are then dead.  For batches on the GPU, and for batches in host memory
 * that copies on `stream` still read.  Work on other streams must be joined to this one first
 * (cudaStreamWaitEvent).
 */
SHARD_API int shard_loader_release_after(struct shard_loader *l, const struct shard_batch *batch, void *stream,
					 struct shard_error *err);

/*
 * Make work that is queued on `stream` after this call wait for work that was queued on `behind`
 * before it.  The host waits for nothing.  For batches that several streams read: make the others
 * wait for the stream given to next_device, and the stream given to release_after wait for them.
 * ARGUMENT before the first batch on a GPU.
 */
SHARD_API int shard_loader_join(struct shard_loader *l, void *stream, void *behind, struct shard_error *err);

/*
 * The number of the GPU that a stream belongs to, as cudaGetDevice() counts.  NULL is the current
 * GPU of the calling thread, or the first GPU if it has chosen none.  Starts the driver and nothing
 * else.  UNSUPPORTED if there is no driver or no GPU.
 */
SHARD_API int shard_stream_gpu(void *stream, uint32_t *ordinal, struct shard_error *err);

/*
 * Page-lock the ring of a loader that delivers in host memory, so that the caller's own copies to the
 * GPU of `stream` run at the link's speed.  Call it before the first shard_loader_next(), which then
 * waits until the slot that it returns is page-locked.  Give each batch back with
 * shard_loader_release_after(), behind its copies: with shard_loader_release() a copy that is still
 * under way would read the next batch's rows.
 *
 * UNSUPPORTED if the machine has no driver or no GPU; the loader then works without.  DEVICE if the
 * driver refuses the stream.  ARGUMENT if the loader delivers on a GPU, or has another GPU.
 */
SHARD_API int shard_loader_pin(struct shard_loader *l, void *stream, struct shard_error *err);

/*
 * Why a CPU copies or hashes records that the GPU could read and hash by itself, which is slower:
 * memory could not be page-locked, or kernels could not be loaded.  Or why each copy of a record is
 * a call of its own, although the driver has one for many.  END if there is nothing to tell.  From
 * the first next_device, release_after or pin on, the ring is page-locked slot by slot in the
 * background.  A ring that was lent is its owner's to page-lock, with cudaHostRegister.
 */
SHARD_API int shard_loader_pin_problem(struct shard_loader *l, struct shard_error *out);

/*
 * For pin_most in struct shard_loader_gpu: page-lock nothing of the page cache.
 *
 * Records of 64 KiB and more that lie in the page cache are page-locked there, in pieces of 32 MiB.
 * The GPU reads them by itself, and no thread copies them to the ring.  So it is with shorter
 * records of which runs of 64 KiB and more come to a pool.  Page-locked memory cannot be used for
 * anything else.  The default of 0 is half of the memory that is available, divided by the ranks
 * that may run on this host.  That is world, or the number of its GPUs if that is less.  A limit of
 * the caller's own may take up to three quarters of the available memory.  What does not fit, is not
 * in memory, or cannot be page-locked goes through the ring.  A pool of the whole dataset page-locks
 * nothing of the page cache.
 */
#define SHARD_PIN_NOTHING 1

/* ---- pool: part of the dataset, or all of it, in the GPU's memory --------------------------- */

/*
 * For pool_bytes in struct shard_loader_gpu: a pool with room for the whole dataset.
 *
 * With pool_bytes not 0, the loader keeps a pool of at most that many bytes in the GPU's memory.
 * It then delivers batches by shard_loader_next_device() only, because the slots of its ring hold
 * runs for the pool, not batches.  A kernel gathers batches from the runs in the pool.  The batches
 * are the same as without a pool.
 *
 * Of a group whose runs have 64 KiB and more, the pool has whole records, as they lie in the shards,
 * if the wanted fields are three quarters of their bytes.  Of other groups it has the wanted fields,
 * as a batch does.  So does a pool of the whole dataset, but for records of 4096 bytes and more.
 *
 * The pool needs room for 3 windows of every lane of this rank, and for all runs that one batch
 * takes records from.  If it is too small, the error says how many bytes it needs.  A pool that
 * holds the whole dataset is filled once, in any order.  After that nothing is copied.
 *
 * If the dataset is not in memory, set run_records so that a run has 1 to 4 MiB.  Each run is one
 * read of the disk, and the default of 256 KiB makes many small reads.  The pool does not choose
 * longer runs by itself, because that would be another order.
 */
#define SHARD_POOL_ALL UINT64_MAX

#ifdef __cplusplus
}
#endif
#endif
