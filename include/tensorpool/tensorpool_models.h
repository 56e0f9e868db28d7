#ifndef TENSORPOOL_TENSORPOOL_MODELS_H
#define TENSORPOOL_TENSORPOOL_MODELS_H

/// @file
/// Mapped files and locked memory for programs in C (C99). Sizes and offsets are
/// bytes unless a name says otherwise. Offsets count from the beginning of the file.
///
/// A function reports a failure by its return value, and `tensorpool_last_error` of
/// <tensorpool/tensorpool.h> returns the reason. No C++ exception leaves a function. A NULL handle
/// is a failure. A failed call changes nothing, unless its description says otherwise.

#include <stddef.h>
#include <stdint.h>

#include <tensorpool/tensorpool.h>
#include <tensorpool/export.hpp>

#ifdef __cplusplus
extern "C" {
#endif

/* Mapped files --------------------------------------------------------------------------------- */

/// A file, or a part of it, that is mapped read-only. `MappedFile` of
/// <tensorpool/mapped_file.hpp> describes it. Any number of threads may call functions that take a
/// pointer to const at once.
///
/// If another process truncates the file, touching a mapped byte beyond its new end raises SIGBUS.
/// Where truncation is possible, copy with `tensorpool_mapped_file_copy`, which is safe.
typedef struct tensorpool_mapped_file tensorpool_mapped_file;

/// A part of a file, which need not begin or end at a page.
typedef struct tensorpool_file_part {
    /// The offset of the first byte.
    uint64_t offset;
    /// The size of the part; UINT64_MAX means everything up to the end of the file.
    uint64_t bytes;
} tensorpool_file_part;

/// The result of advice to the system.
typedef enum tensorpool_advised {
    /// The call failed: the file is NULL, or an argument is none of its enumeration.
    tensorpool_advised_invalid = -1,
    /// The system followed it.
    tensorpool_advised_done = 0,
    /// Nothing was done: this machine has one memory node.
    tensorpool_advised_one_node = 1,
    /// Nothing was done: this system, or the file's, has no such function.
    tensorpool_advised_unsupported = 2,
    /// The system did not follow it, or only in part.
    tensorpool_advised_refused = 3
} tensorpool_advised;
/// When prefetched pages are in memory.
enum tensorpool_prefetch {
    /// The system begins to read them, and the call returns.
    tensorpool_prefetch_ahead = 0,
    /// They are in memory when the call returns, and touching them costs no page fault.
    tensorpool_prefetch_now = 1
};
/// The order in which pages will be touched.
enum tensorpool_access_pattern {
    /// No particular order.
    tensorpool_access_normal = 0,
    /// From the first to the last.
    tensorpool_access_sequential = 1,
    /// In random order.
    tensorpool_access_random = 2
};
/// On which memory node pages of a file are placed that are not in memory yet.
enum tensorpool_numa_placement {
    /// On the node of the thread that touches a page first.
    tensorpool_numa_first_touch = 0,
    /// On all nodes in turn.
    tensorpool_numa_interleave_pages = 1,
    /// On one node, or on others if that is full.
    tensorpool_numa_bind = 2
};

/// Maps a part of a regular file without reading it. With `shared` 1 the mapping shows what other
/// processes write to the file; with 0 that is unspecified. Returns NULL if the file cannot be
/// opened or mapped, and for a part beyond its end.
TENSORPOOL_API tensorpool_mapped_file* tensorpool_mapped_file_open(const char* path,
                                                                   tensorpool_file_part part,
                                                                   int32_t shared);
/// Ends the mapping and closes the file; NULL is ignored.
TENSORPOOL_API void tensorpool_mapped_file_close(tensorpool_mapped_file* file);
/// Returns the file's path, valid as long as the mapping; NULL for NULL.
TENSORPOOL_API const char* tensorpool_mapped_file_path(const tensorpool_mapped_file* file);
/// Returns which part of the file is mapped; an empty part for NULL.
TENSORPOOL_API tensorpool_file_part tensorpool_mapped_file_part(const tensorpool_mapped_file* file);
/// Returns the mapped bytes of a part. Parts that were unmapped must not be touched. Returns NULL
/// for an empty part, which is no failure, and if the part does not lie within the mapped one.
TENSORPOOL_API const void* tensorpool_mapped_file_bytes(const tensorpool_mapped_file* file,
                                                        tensorpool_file_part part);
/// Returns the present size of the file; 0 if it is unknown, and for NULL.
TENSORPOOL_API uint64_t tensorpool_mapped_file_size(const tensorpool_mapped_file* file);
/// Copies `bytes` bytes from the file through the kernel, starting at `offset`. Fails if the file
/// is shorter now, and `to` then holds the bytes that were there. Fails if the bytes do not lie
/// within the mapped part, and if they cannot be read.
TENSORPOOL_API tensorpool_status tensorpool_mapped_file_copy(const tensorpool_mapped_file* file,
                                                             uint64_t offset, void* to,
                                                             size_t bytes);
/// Reads pages from the disk into memory; `when` is a tensorpool_prefetch.
TENSORPOOL_API tensorpool_advised tensorpool_mapped_file_prefetch(
    const tensorpool_mapped_file* file, int32_t when, tensorpool_file_part part);
/// Announces how pages will be touched; `pattern` is a tensorpool_access_pattern.
TENSORPOOL_API tensorpool_advised tensorpool_mapped_file_advise(const tensorpool_mapped_file* file,
                                                                int32_t pattern,
                                                                tensorpool_file_part part);
/// Requests huge pages for the whole ones within the part. The file system decides whether a file
/// gets them.
TENSORPOOL_API tensorpool_advised tensorpool_mapped_file_prefer_huge_pages(
    const tensorpool_mapped_file* file, tensorpool_file_part part);
/// Sets on which memory node pages are placed that this mapping brings into memory from now on;
/// `placement` is a tensorpool_numa_placement.
TENSORPOOL_API tensorpool_advised tensorpool_mapped_file_place(tensorpool_mapped_file* file,
                                                               int32_t placement, uint32_t node);
/// Returns the bytes of the part's pages that are in memory, for this process or any other; 0 if
/// the system does not report it, and for NULL.
TENSORPOOL_API uint64_t tensorpool_mapped_file_resident_bytes(const tensorpool_mapped_file* file,
                                                              tensorpool_file_part part);
/// Removes the whole pages within the part from this process's resident memory. They come back when
/// touched.
TENSORPOOL_API tensorpool_advised
tensorpool_mapped_file_drop_pages(const tensorpool_mapped_file* file, tensorpool_file_part part);
/// Removes the whole pages within the part from the system's cache, except those that are mapped or
/// changed.
TENSORPOOL_API tensorpool_advised tensorpool_mapped_file_drop_from_cache(
    const tensorpool_mapped_file* file, tensorpool_file_part part);
/// Ends the mapping of the whole pages within the part, for good. Touching unmapped bytes faults.
/// Stores in `*unmapped`, unless it is NULL, the bytes that were unmapped.
TENSORPOOL_API tensorpool_status tensorpool_mapped_file_unmap(tensorpool_mapped_file* file,
                                                              tensorpool_file_part part,
                                                              uint64_t* unmapped);

/* Locked memory -------------------------------------------------------------------------------- */

/// Keeps a range of memory resident until it is destroyed: from the beginning of the range, as far
/// as requested. One thread at a time may use it.
typedef struct tensorpool_memory_lock tensorpool_memory_lock;

/// What prevented a lock; `LockLimit` of <tensorpool/memory_lock.hpp> describes each value.
enum tensorpool_lock_limit {
    /// Nothing.
    tensorpool_lock_limit_none = 0,
    /// The process's limit of locked memory, which it may raise itself.
    tensorpool_lock_limit_soft = 1,
    /// The process's limit of locked memory, which only an administrator may raise.
    tensorpool_lock_limit_hard = 2,
    /// The available memory of the machine.
    tensorpool_lock_limit_machine = 3,
    /// The memory that the limit of the container leaves.
    tensorpool_lock_limit_container = 4,
    /// Not all of the range is mapped, or its file was truncated.
    tensorpool_lock_limit_pages = 5,
    /// Another reason of the system.
    tensorpool_lock_limit_system = 6
};

/// The result of a request to lock memory. Later versions add fields only at the end.
typedef struct tensorpool_lock_outcome {
    /// The size of the struct, sizeof(tensorpool_lock_outcome), which the caller sets.
    size_t struct_bytes;
    /// What prevented the lock, a tensorpool_lock_limit.
    int32_t limit;
    /// The system's error number, for tensorpool_lock_limit_system.
    int32_t error;
    /// The requested bytes, from the beginning of the range.
    size_t asked_bytes;
    /// The bytes of them that are locked, in whole pages.
    size_t locked_bytes;
    /// The value of the limit; for tensorpool_lock_limit_machine, its memory.
    size_t limit_bytes;
    /// The process's hard limit, for the limits of the process; SIZE_MAX means none.
    size_t hard_limit_bytes;
    /// The limit with which the lock would have succeeded, for the limits of the process.
    size_t needed_bytes;
    /// The memory that was available, for the machine and the container.
    size_t available_bytes;
} tensorpool_lock_outcome;

/// Makes a lock for a range, which need not begin or end at a page. Nothing is locked yet. The
/// range must stay mapped as long as the lock exists. Returns NULL for a NULL range with bytes, and
/// without memory.
TENSORPOOL_API tensorpool_memory_lock* tensorpool_memory_lock_create(const void* range,
                                                                     size_t bytes);
/// Unlocks the memory and destroys the lock; NULL is ignored.
TENSORPOOL_API void tensorpool_memory_lock_destroy(tensorpool_memory_lock* lock);
/// Locks the first `bytes` bytes of the range, at most all of it; bytes that are locked stay
/// locked. `outcome` may be NULL.
///
/// Returns tensorpool_ok if all of the requested bytes are locked. If the system refuses, it
/// returns tensorpool_out_of_memory, what was locked stays locked, and the last error names the
/// limit and how to raise it.
TENSORPOOL_API tensorpool_status tensorpool_memory_lock_grow_to(tensorpool_memory_lock* lock,
                                                                size_t bytes,
                                                                tensorpool_lock_outcome* outcome);
/// Returns the locked bytes, from the beginning of the range; 0 for NULL.
TENSORPOOL_API size_t tensorpool_memory_lock_locked_bytes(const tensorpool_memory_lock* lock);

#ifdef __cplusplus
}
#endif

#endif
