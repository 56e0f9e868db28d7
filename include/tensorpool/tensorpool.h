#ifndef TENSORPOOL_TENSORPOOL_H
#define TENSORPOOL_TENSORPOOL_H

/// @file
/// The memory pool for programs in C (C99) and for languages that can call C. Sizes are bytes
/// unless a name says otherwise.
///
/// Any thread may call any function at any time; only `tensorpool_destroy` must not run
/// concurrently with other calls on its pool.
///
/// A function reports a failure by its return value, and `tensorpool_last_error` returns the
/// reason. No C++ exception leaves a function. A NULL pool is a failure, except that destroying it
/// does nothing; it never means the global pool.

#include <stddef.h>
#include <stdint.h>

#include <tensorpool/export.hpp>

#ifdef __cplusplus
extern "C" {
#endif

/// A memory pool.
typedef struct tensorpool_pool tensorpool_pool;

/// The result of a call.
typedef enum tensorpool_status {
    /// The call succeeded.
    tensorpool_ok = 0,
    /// An argument is invalid.
    tensorpool_invalid_argument = 1,
    /// The memory is unavailable, or a limit does not allow it.
    tensorpool_out_of_memory = 2,
    /// The call failed for another reason.
    tensorpool_other_failure = 3
} tensorpool_status;

/* Texts ---------------------------------------------------------------------------------------- */

/// Returns the library's version, such as "0.1.0"; never NULL.
TENSORPOOL_API const char* tensorpool_version(void);
/// Returns one line about the last failed call on this thread: what was found and what was
/// expected.
///
/// Returns "" before the first failure. A successful call leaves the text as it is. Never NULL;
/// valid until the next failed call on this thread.
TENSORPOOL_API const char* tensorpool_last_error(void);

/* Pools ---------------------------------------------------------------------------------------- */

/// When a pool requests huge pages; `HugePages` of <tensorpool/pool_options.hpp> describes each
/// value.
enum tensorpool_huge_pages {
    /// Never.
    tensorpool_huge_pages_never = 0,
    /// For fresh memory that is about to be touched; the default.
    tensorpool_huge_pages_buckets = 1,
    /// For growing buckets and large blocks.
    tensorpool_huge_pages_automatic = 2,
    /// For all memory that the pool commits.
    tensorpool_huge_pages_always = 3
};
/// On which memory nodes a pool's pages are placed.
enum tensorpool_numa {
    /// As the system decides; the default.
    tensorpool_numa_system = 0,
    /// On `numa_node`, and on others if that is full.
    tensorpool_numa_prefer = 1,
    /// Page by page in turn over all nodes.
    tensorpool_numa_interleave = 2
};
/// How much each call is checked; `Checks` of <tensorpool/pool_options.hpp> describes each value.
enum tensorpool_checks {
    /// Only what a free without size looks up anyway.
    tensorpool_checks_off = 0,
    /// Wrong pointers, blocks freed twice, and sizes of another bucket stop the program.
    tensorpool_checks_basic = 1,
    /// Like `tensorpool_checks_basic`; too small sizes and blocks left at the end stop the program
    /// too.
    tensorpool_checks_full = 2,
    /// Like `tensorpool_checks_off`, but some blocks are guarded: accesses beyond them and after
    /// their free stop the program.
    tensorpool_checks_sampled = 3,
    /// Like `tensorpool_checks_full`, and every block is protected.
    tensorpool_checks_hardened = 4
};
/// Whether a background thread gives back a pool's unneeded memory while no call does;
/// `BackgroundTrim` of <tensorpool/pool_options.hpp> describes each value.
enum tensorpool_background_trim {
    /// No thread; the default.
    tensorpool_background_trim_off = 0,
    /// Starts where `tensorpool run` sees a thread created, or a pool is made after that.
    tensorpool_background_trim_automatic = 1,
    /// The thread starts when the pool is made.
    tensorpool_background_trim_on = 2
};
/// The kinds of events.
enum tensorpool_event_kind {
    /// `bytes` more were committed.
    tensorpool_event_growth = 0,
    /// `bytes` were given back to the system.
    tensorpool_event_give_back = 1,
    /// A request of `bytes` bytes was met only after free memory had been gathered from all caches.
    tensorpool_event_pressure = 2,
    /// A request of `bytes` bytes failed.
    tensorpool_event_failure = 3
};

/// An event that a pool reports to `on_event`. It and its strings are valid during the call.
typedef struct tensorpool_event {
    /// What happened, a tensorpool_event_kind.
    int32_t kind;
    /// The pool's name.
    const char* pool;
    /// The bytes that the event is about.
    size_t bytes;
    /// The bytes in use at that time.
    size_t in_use;
    /// The bytes committed at that time.
    size_t capacity;
    /// For a failure, the limit that was met, such as "max_capacity"; otherwise "".
    const char* limit;
} tensorpool_event;

/// The options of a pool. Call `tensorpool_options_init` first, which sets `struct_bytes` and every
/// default. Later versions add fields only at the end.
typedef struct tensorpool_options {
    /// The size of the struct, sizeof(tensorpool_options).
    size_t struct_bytes;
    /// The name shown in statistics and messages. It is copied; at most 47 bytes of it are kept.
    const char* name;
    /// The memory committed and touched when the pool is made.
    size_t initial_capacity;
    /// The limit of the capacity, free memory included. 0 means no limit.
    size_t max_capacity;
    /// The limit for one request; a larger one fails at once.
    size_t max_allocation;
    /// The smallest growth.
    size_t growth_step;
    /// The smallest growth as a multiple of the present capacity.
    double growth_factor;
    /// The part of the available memory, from 0 to 1, up to which growth may go beyond the bare
    /// need.
    double growth_fraction;
    /// The free bytes that may stay committed.
    size_t retain_bytes;
    /// The length of a period: memory that was not needed for a whole period is given back at its
    /// end. 0 gives memory back at once.
    uint32_t retain_milliseconds;
    /// When the pool requests huge pages, a tensorpool_huge_pages.
    int32_t huge_pages;
    /// On which memory nodes pages are placed, a tensorpool_numa.
    int32_t numa;
    /// For tensorpool_numa_prefer, the number of the node.
    uint32_t numa_node;
    /// How much misuse is stopped, a tensorpool_checks.
    int32_t checks;
    /// A function to call for each event; may be NULL. It gets `on_event_user` as its second
    /// argument.
    ///
    /// It runs on the thread whose request caused the event, or on the background trimmer's, and
    /// may use the pool. It is not called for memory given back at the request of another process.
    /// A lock that it takes must not be held during tensorpool_destroy or
    /// tensorpool_allow_background_trimmer.
    void (*on_event)(const tensorpool_event* event, void* user);
    /// The second argument of `on_event`.
    void* on_event_user;
    /// Whether a background thread gives memory back, a tensorpool_background_trim.
    int32_t retain_background;
    /// With tensorpool_checks_sampled: the part of each thread's time that guards may take, from 0
    /// to 1.
    double guard_share;
    /// With tensorpool_checks_hardened: the bytes of freed blocks that wait before they are reused.
    size_t quarantine_bytes;
} tensorpool_options;

/// Sets the first `struct_bytes` bytes of `options`, which must be sizeof(tensorpool_options), to
/// the defaults. Fails if `options` is NULL or the size is not that of any version of this struct.
TENSORPOOL_API tensorpool_status tensorpool_options_init(tensorpool_options* options,
                                                         size_t struct_bytes);
/// Makes a pool with these options; NULL means all defaults. Returns NULL for invalid options, for
/// a field that is set and that this library is too old to know, and if `initial_capacity` is
/// unavailable.
TENSORPOOL_API tensorpool_pool* tensorpool_create(const tensorpool_options* options);
/// Destroys a pool and gives all its memory back, blocks in use included; NULL is ignored. No other
/// call on the pool may be under way. For the global pool, which is never destroyed, it fails and
/// changes nothing.
TENSORPOOL_API tensorpool_status tensorpool_destroy(tensorpool_pool* pool);
/// Returns the global pool, the pool of the process, which is set up on its first use from the
/// environment. Never NULL.
TENSORPOOL_API tensorpool_pool* tensorpool_global(void);

/* Blocks --------------------------------------------------------------------------------------- */

/// Allocates at least `bytes` bytes, aligned to 64. The content is undefined. Returns NULL for 0,
/// which is no failure, and if the request cannot be met.
TENSORPOOL_API void* tensorpool_allocate(tensorpool_pool* pool, size_t bytes);
/// Allocates at least `bytes` bytes, aligned to `alignment`. The content is undefined. Returns NULL
/// for 0, which is no failure, if the request cannot be met, and unless `alignment` is a power of
/// two.
TENSORPOOL_API void* tensorpool_allocate_aligned(tensorpool_pool* pool, size_t bytes,
                                                 size_t alignment);
/// Allocates `count * element_bytes` bytes that are all zero, aligned to 64. Returns NULL if the
/// product is 0, which is no failure, if it overflows, and if the request cannot be met.
TENSORPOOL_API void* tensorpool_allocate_zeroed(tensorpool_pool* pool, size_t count,
                                                size_t element_bytes);
/// Changes the size of a block of default alignment to `new_bytes`, and moves it if necessary. The
/// first min(old_bytes, new_bytes) bytes are kept. Returns the block's address.
///
/// With `block` NULL and `old_bytes` 0 it allocates. With `new_bytes` 0 it frees the block and
/// returns NULL, which is no failure. If it fails, it returns NULL and the old block stays valid.
TENSORPOOL_API void* tensorpool_reallocate(tensorpool_pool* pool, void* block, size_t old_bytes,
                                           size_t new_bytes);
/// Frees a block of any alignment; NULL is ignored. A pointer that is not a block of this pool
/// stops the program with a line on stderr that says what it is.
TENSORPOOL_API void tensorpool_deallocate(tensorpool_pool* pool, void* block);
/// Frees a block of default alignment, faster than tensorpool_deallocate; NULL is ignored. `bytes`
/// is any value from the requested size to the usable size.
TENSORPOOL_API void tensorpool_deallocate_sized(tensorpool_pool* pool, void* block, size_t bytes);
/// Frees a block that was allocated with this alignment; NULL is ignored. `bytes` is any value from
/// the requested size to the usable size.
TENSORPOOL_API void tensorpool_deallocate_aligned(tensorpool_pool* pool, void* block, size_t bytes,
                                                  size_t alignment);

/// Commits and touches memory until the capacity is at least `capacity`. If it fails, nothing has
/// changed.
TENSORPOOL_API tensorpool_status tensorpool_reserve(tensorpool_pool* pool, size_t capacity);
/// Gives the free memory back to the system. Returns the number of bytes given back.
TENSORPOOL_API size_t tensorpool_trim(tensorpool_pool* pool);
/// Allows (1) or forbids (0) the thread of the process that trims pools with `retain_background`. 0
/// ends the thread and returns when it has ended. Do not call it from `on_event`, nor with a lock
/// held that an `on_event` takes.
TENSORPOOL_API void tensorpool_allow_background_trimmer(int32_t allowed);
/// Returns 1 if `address` lies inside a block in use of this pool, otherwise 0.
TENSORPOOL_API int tensorpool_owns(const tensorpool_pool* pool, const void* address);
/// Returns the usable bytes of the block that begins at `block`; 0 for any other pointer.
TENSORPOOL_API size_t tensorpool_usable_size(const tensorpool_pool* pool, const void* block);

/// Writes a report about an access to `address`, if that lies in memory which a pool with
/// tensorpool_checks_sampled or tensorpool_checks_hardened protects: what the access did wrong, and
/// where the block was allocated and freed, as far as that is known.
///
/// At most `bytes` bytes of `text` are used, including the final zero. Returns the length of the
/// text without the zero; 0 if no pool protects the address, or if `bytes` is 0. For programs that
/// handle SIGSEGV themselves and thereby replace the pools' handler: it may be called in a signal
/// handler.
TENSORPOOL_API size_t tensorpool_describe_fault(const void* address, char* text, size_t bytes);

/* Statistics ----------------------------------------------------------------------------------- */

/// The main statistics of a pool. `PoolStatistics` of <tensorpool/statistics.hpp> has all of them.
/// Later versions add fields only at the end.
typedef struct tensorpool_statistics {
    /// The size of the struct, sizeof(tensorpool_statistics), which the caller sets.
    size_t struct_bytes;
    /// The bytes of blocks that callers hold.
    uint64_t in_use_bytes;
    /// The committed bytes, free memory included.
    uint64_t capacity_bytes;
    /// The address space that the pool holds.
    uint64_t reserved_bytes;
    /// The limit of the capacity, `max_capacity`; 0 means no limit.
    uint64_t limit_bytes;
    /// The highest value of `in_use_bytes` so far.
    uint64_t peak_in_use_bytes;
    /// The highest value of `capacity_bytes` so far.
    uint64_t peak_capacity_bytes;
    /// The highest value of `reserved_bytes` so far.
    uint64_t peak_reserved_bytes;
    /// The total of the requested sizes.
    uint64_t requested_bytes;
    /// The total of the block sizes that served the requests.
    uint64_t allocated_bytes;
    /// The total number of allocations.
    uint64_t allocations;
    /// The total number of deallocations.
    uint64_t deallocations;
    /// The allocations that a thread's magazines or the large-block cache served.
    uint64_t cache_hits;
    /// All other allocations.
    uint64_t cache_misses;
    /// The requests that could not be met.
    uint64_t failures;
    /// The free bytes in the magazines of threads.
    uint64_t parked_bytes;
    /// The free bytes in the large-block cache.
    uint64_t cached_bytes;
    /// The free committed bytes in runs of whole pages.
    uint64_t free_bytes;
    /// The bytes of the pool's own records, which are not part of the capacity.
    uint64_t record_bytes;
    /// How often memory was committed.
    uint64_t growths;
    /// How often memory was given back to the system.
    uint64_t give_backs;
} tensorpool_statistics;

/// Fills in the first `statistics->struct_bytes` bytes of `statistics`. A field that this library
/// is too old to know becomes 0. Fails if `statistics` is NULL or its size is not that of any
/// version of this struct.
TENSORPOOL_API tensorpool_status tensorpool_read_statistics(const tensorpool_pool* pool,
                                                            tensorpool_statistics* statistics);
/// Writes all statistics as one JSON object into `buffer`, by the rules of snprintf.
///
/// The text is cut to `buffer_bytes` bytes with its terminating zero, which is always written
/// unless `buffer_bytes` is 0. Returns the length of the whole text, so a call with NULL and 0
/// measures it, or a negative number if the call fails.
TENSORPOOL_API int tensorpool_report_json(const tensorpool_pool* pool, char* buffer,
                                          size_t buffer_bytes);
/// Writes a report for people into `buffer`, by the rules of snprintf.
///
/// The text is cut to `buffer_bytes` bytes with its terminating zero, which is always written
/// unless `buffer_bytes` is 0. Returns the length of the whole text, so a call with NULL and 0
/// measures it, or a negative number if the call fails.
TENSORPOOL_API int tensorpool_report_text(const tensorpool_pool* pool, char* buffer,
                                          size_t buffer_bytes);

#ifdef __cplusplus
}
#endif

#endif
