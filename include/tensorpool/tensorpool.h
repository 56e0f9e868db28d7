#ifndef TENSORPOOL_TENSORPOOL_H
#define TENSORPOOL_TENSORPOOL_H

/// @file
/// The pool for programs in C (C99) and for all that can call C. Sizes are bytes unless a name says
/// otherwise. Any thread may call any function at any time; only `tensorpool_destroy` wants to be
/// alone with its pool.
///
/// A function that fails says so by what it returns, and `tensorpool_last_error` tells why. No
/// exception gets out. A pool that is NULL is a failure too, never the global pool.

#include <stddef.h>
#include <stdint.h>

#include <tensorpool/export.hpp>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tensorpool_pool tensorpool_pool;

typedef enum tensorpool_status {
    tensorpool_ok = 0,
    tensorpool_invalid_argument = 1,
    tensorpool_out_of_memory = 2,
    tensorpool_other_failure = 3
} tensorpool_status;

/* Texts ---------------------------------------------------------------------------------------- */

/// Such as "0.1.0". Never NULL.
TENSORPOOL_API const char* tensorpool_version(void);
/// One line on the last failure of a call on this thread: what was found and what was expected. ""
/// before the first; a success leaves it as it is. Never NULL; valid until the next failure on this
/// thread.
TENSORPOOL_API const char* tensorpool_last_error(void);

/* Pools ---------------------------------------------------------------------------------------- */

enum tensorpool_huge_pages {
    tensorpool_huge_pages_never = 0,
    tensorpool_huge_pages_buckets = 1,
    tensorpool_huge_pages_automatic = 2,
    tensorpool_huge_pages_always = 3
};
enum tensorpool_numa {
    tensorpool_numa_system = 0,
    tensorpool_numa_prefer = 1,
    tensorpool_numa_interleave = 2
};
enum tensorpool_checks {
    tensorpool_checks_off = 0,
    tensorpool_checks_basic = 1,
    tensorpool_checks_full = 2
};
enum tensorpool_background_trim {
    tensorpool_background_trim_off = 0,
    tensorpool_background_trim_automatic = 1,
    tensorpool_background_trim_on = 2
};
enum tensorpool_event_kind {
    tensorpool_event_growth = 0,
    tensorpool_event_give_back = 1,
    tensorpool_event_pressure = 2,
    tensorpool_event_failure = 3
};

/// Something that a pool tells its owner; it and its strings live as long as the call. Fields as in
/// `PoolEvent` of <tensorpool/pool_options.hpp>.
typedef struct tensorpool_event {
    int32_t kind; /* a tensorpool_event_kind */
    const char* pool;
    size_t bytes;
    size_t in_use;
    size_t capacity;
    const char* limit;
} tensorpool_event;

/// What a pool can be told when it is made. Begin with `tensorpool_options_init`, which sets the
/// size and every default. Later versions add fields at the end only. Fields as in `PoolOptions` of
/// <tensorpool/pool_options.hpp>.
typedef struct tensorpool_options {
    size_t struct_bytes; /* sizeof(tensorpool_options) */
    const char* name;    /* copied */
    size_t initial_capacity;
    size_t max_capacity; /* 0 means none */
    size_t max_allocation;
    size_t growth_step;
    double growth_factor;
    double growth_fraction;
    size_t retain_bytes;
    uint32_t retain_milliseconds;
    int32_t huge_pages; /* a tensorpool_huge_pages */
    int32_t numa;       /* a tensorpool_numa */
    uint32_t numa_node;
    int32_t checks; /* a tensorpool_checks */
    /// Called on the thread whose request caused it, or on the background trimmer's; may be NULL.
    /// May use the pool. Not called for what a request to trim from another process gives back.
    /// No lock that it takes may be held in tensorpool_destroy or in
    /// tensorpool_allow_background_trimmer.
    void (*on_event)(const tensorpool_event* event, void* user);
    void* on_event_user;
    int32_t retain_background; /* a tensorpool_background_trim */
} tensorpool_options;

/// Sets the first `struct_bytes` bytes, which must be sizeof(tensorpool_options), to the defaults.
/// Fails when `options` is NULL or the size cannot be one of this struct's.
TENSORPOOL_API tensorpool_status tensorpool_options_init(tensorpool_options* options,
                                                         size_t struct_bytes);
/// A pool with these options, or with all defaults for NULL. Returns NULL for options that make no
/// sense, for a field that is set and that this library is too old to know, and when
/// `initial_capacity` cannot be had.
TENSORPOOL_API tensorpool_pool* tensorpool_create(const tensorpool_options* options);
/// Gives all memory of the pool back, blocks in use included. No other call on it may be under way.
/// NULL is ignored. The global pool is never destroyed: it fails and changes nothing.
TENSORPOOL_API tensorpool_status tensorpool_destroy(tensorpool_pool* pool);
/// The one behind tensor constructors, set up on its first use from the environment. Never NULL.
TENSORPOOL_API tensorpool_pool* tensorpool_global(void);

/* Blocks --------------------------------------------------------------------------------------- */

/// A block of at least `bytes`, aligned to 64; its content is undefined. Returns NULL for 0, which
/// is no failure, and when it cannot be had.
TENSORPOOL_API void* tensorpool_allocate(tensorpool_pool* pool, size_t bytes);
/// As above, aligned to `alignment`. Fails too unless that is a power of two.
TENSORPOOL_API void* tensorpool_allocate_aligned(tensorpool_pool* pool, size_t bytes,
                                                 size_t alignment);
/// A block of `count * element_bytes` zeros. Fails too when the product overflows.
TENSORPOOL_API void* tensorpool_allocate_zeroed(tensorpool_pool* pool, size_t count,
                                                size_t element_bytes);
/// Makes a block of default alignment hold `new_bytes`, moving it if need be; the first
/// min(old_bytes, new_bytes) bytes are kept. With NULL and 0 it allocates; with `new_bytes` 0 it
/// frees and returns NULL, which is no failure. When it fails it returns NULL and the old block
/// stands.
TENSORPOOL_API void* tensorpool_reallocate(tensorpool_pool* pool, void* block, size_t old_bytes,
                                           size_t new_bytes);
/// Gives a block back, whatever its alignment; NULL is ignored. A pointer that is not a block of
/// this pool stops the program with a line on stderr that says what it is.
TENSORPOOL_API void tensorpool_deallocate(tensorpool_pool* pool, void* block);
/// The faster one, for blocks of default alignment: `bytes` is anything from what was asked for to
/// the usable size.
TENSORPOOL_API void tensorpool_deallocate_sized(tensorpool_pool* pool, void* block, size_t bytes);
/// For blocks made with this alignment.
TENSORPOOL_API void tensorpool_deallocate_aligned(tensorpool_pool* pool, void* block, size_t bytes,
                                                  size_t alignment);

/// Commits memory until capacity is at least `capacity`, touched and ready. When it fails nothing
/// has changed.
TENSORPOOL_API tensorpool_status tensorpool_reserve(tensorpool_pool* pool, size_t capacity);
/// Gives back to the system what is free. Returns the bytes given back.
TENSORPOOL_API size_t tensorpool_trim(tensorpool_pool* pool);
/// Whether pools with `retain_background` may have their thread, the one of the process. 0 ends it
/// and returns when it is gone. Not from `on_event`, nor with a lock held that an `on_event` takes.
TENSORPOOL_API void tensorpool_allow_background_trimmer(int32_t allowed);
/// 1 for any address inside a block of this pool in use, otherwise 0.
TENSORPOOL_API int tensorpool_owns(const tensorpool_pool* pool, const void* address);
/// Bytes that may be used of the block that begins at `block`; 0 for any other pointer.
TENSORPOOL_API size_t tensorpool_usable_size(const tensorpool_pool* pool, const void* block);

/* Statistics ----------------------------------------------------------------------------------- */

/// The headline figures of a pool. Later versions add fields at the end only. Fields as in
/// `PoolStatistics` of <tensorpool/statistics.hpp>, where each is told in full.
typedef struct tensorpool_statistics {
    size_t struct_bytes; /* sizeof(tensorpool_statistics), set by the caller */
    uint64_t in_use_bytes;
    uint64_t capacity_bytes;
    uint64_t reserved_bytes;
    uint64_t limit_bytes; /* max_capacity; 0 means none */
    uint64_t peak_in_use_bytes;
    uint64_t peak_capacity_bytes;
    uint64_t peak_reserved_bytes;
    uint64_t requested_bytes;
    uint64_t allocated_bytes;
    uint64_t allocations;
    uint64_t deallocations;
    uint64_t cache_hits;
    uint64_t cache_misses;
    uint64_t failures;
    uint64_t parked_bytes;
    uint64_t cached_bytes;
    uint64_t free_bytes;
    uint64_t record_bytes;
    uint64_t growths;
    uint64_t give_backs;
} tensorpool_statistics;

/// Fills in the first `statistics->struct_bytes` bytes; a field that this library is too old to
/// know reads 0. Fails when `statistics` is NULL or its size cannot be one of this struct's.
TENSORPOOL_API tensorpool_status tensorpool_read_statistics(const tensorpool_pool* pool,
                                                            tensorpool_statistics* statistics);
/// All figures as one JSON object, or as a report for people, put into `buffer` by the rules of
/// snprintf: cut to `buffer_bytes` with the closing zero, which is always there unless
/// `buffer_bytes` is 0; returns the length of the whole text, so that the call with NULL and 0
/// measures. Returns a negative number when it fails.
TENSORPOOL_API int tensorpool_report_json(const tensorpool_pool* pool, char* buffer,
                                          size_t buffer_bytes);
TENSORPOOL_API int tensorpool_report_text(const tensorpool_pool* pool, char* buffer,
                                          size_t buffer_bytes);

#ifdef __cplusplus
}
#endif

#endif
