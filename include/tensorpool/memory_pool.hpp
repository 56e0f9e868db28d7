#pragma once

/// @file
/// The memory pool. Sizes are bytes unless a name says otherwise.

#include <tensorpool/detail/thread_cache.hpp>
#include <tensorpool/errors.hpp>
#include <tensorpool/pool_options.hpp>
#include <tensorpool/statistics.hpp>

namespace tensorpool {

namespace detail {
inline namespace abi_2 {
class Pool;
struct GlobalPool;
struct PoolAccess;
}  // namespace abi_2
}  // namespace detail

/// A thread-safe pool of memory blocks.
///
/// Any thread may call any member at any time, and may free blocks that other threads allocated.
/// Only the destructor must not run concurrently with other calls. Blocks never move and never
/// overlap, and the pool never writes into a block.
///
/// Blocks of up to 64 KiB come from eleven buckets, one for each power of two from 64 B. Larger
/// blocks are runs of whole pages.
class TENSORPOOL_API MemoryPool {
public:
    /// Makes a pool with default options that commits and touches `initial_capacity` bytes. Throws
    /// AllocationError if they are unavailable.
    explicit MemoryPool(std::size_t initial_capacity = 0);
    /// Makes a pool with these options. Throws std::invalid_argument for contradictory or
    /// out-of-range options, and AllocationError if the initial capacity is unavailable.
    explicit MemoryPool(const PoolOptions& options);
    /// Gives all memory back, blocks in use included. No other call on the pool may be under way.
    ///
    /// The destructor waits while the background trimmer, or a thread that answers a trim request,
    /// visits the pool. So the caller must hold no lock that `PoolOptions::on_event` takes.
    ~MemoryPool();
    MemoryPool(const MemoryPool&) = delete;
    MemoryPool& operator=(const MemoryPool&) = delete;

    /// Allocates at least `bytes` bytes, aligned to 64. The content is undefined. Returns nullptr
    /// for 0. Throws AllocationError (a std::bad_alloc) if the request cannot be met; the pool is
    /// then unchanged.
    void* allocate(std::size_t bytes);
    /// Allocates at least `bytes` bytes, aligned to `alignment`, a power of two. The content is
    /// undefined. Returns nullptr for 0. Throws AllocationError (a std::bad_alloc) if the request
    /// cannot be met, and std::invalid_argument for any other alignment; the pool is then
    /// unchanged.
    void* allocate(std::size_t bytes, std::size_t alignment);
    /// Allocates at least `bytes` bytes, aligned to `alignment`, a power of two. The content is
    /// undefined. Returns nullptr for 0, for any other alignment, and if the request cannot be met.
    void* try_allocate(std::size_t bytes, std::size_t alignment = 64) noexcept;
    /// Allocates at least `bytes` bytes, aligned to 64, for callers that will write the whole
    /// block. The content is undefined. Returns nullptr for 0. Throws AllocationError (a
    /// std::bad_alloc) if the request cannot be met; the pool is then unchanged.
    ///
    /// The part of a block above 64 KiB that comes fresh from the system is made resident by one
    /// system call (on Linux madvise with MADV_POPULATE_WRITE). That costs a tenth to a third less
    /// than page faults do, and a fifth to a twentieth of them with larger pages, which it requests
    /// as `HugePages::buckets` describes.
    void* allocate_prefaulted(std::size_t bytes);
    /// Allocates at least `bytes` bytes, aligned to 64, for callers that will write the whole
    /// block. The content is undefined. Returns nullptr for 0 and if the request cannot be met.
    /// Fresh pages are made resident by one system call, as `allocate_prefaulted` describes.
    void* try_allocate_prefaulted(std::size_t bytes) noexcept;
    /// Allocates `count * element_bytes` bytes that are all zero, aligned to 64. Returns nullptr if
    /// the product is 0. Throws AllocationError (a std::bad_alloc) if the product overflows or the
    /// request cannot be met; the pool is then unchanged.
    void* allocate_zeroed(std::size_t count, std::size_t element_bytes);
    /// Allocates `count * element_bytes` bytes that are all zero, aligned to 64. Returns nullptr if
    /// the product is 0 or overflows, and if the request cannot be met.
    void* try_allocate_zeroed(std::size_t count, std::size_t element_bytes) noexcept;
    /// Changes the size of a block of default alignment to `new_bytes`, and moves it if necessary.
    /// Keeps the first `min(old_bytes, new_bytes)` bytes, and returns the block's address. More
    /// `old_bytes` than `usable_size(p)` stop the program: they would be bytes of other blocks.
    /// With `p` nullptr and `old_bytes` 0 it allocates. With `new_bytes` 0 it frees the block and
    /// returns nullptr. Throws AllocationError (a std::bad_alloc) if the request cannot be met; the
    /// old block then stays valid.
    void* reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes);

    /// Frees a block of any alignment; nullptr is ignored. A pointer that is not a block of this
    /// pool stops the program with a line on stderr that says what it is.
    void deallocate(void* p) noexcept;
    /// Frees a block of default alignment, faster than `deallocate(p)`; nullptr is ignored.
    ///
    /// `bytes` is any value from the requested size to `usable_size(p)`. The block must come from
    /// this pool's functions, not from a `malloc` that the pool serves. The fast path validates the
    /// pointer only with checks (PoolOptions::checks).
    void deallocate(void* p, std::size_t bytes) noexcept;
    /// Frees a block that was allocated with this alignment; nullptr is ignored. `bytes` is any
    /// value from the requested size to `usable_size(p)`.
    void deallocate(void* p, std::size_t bytes, std::size_t alignment) noexcept;

    /// Commits and touches memory until the capacity is at least `capacity`. Throws
    /// AllocationError, changing nothing, if that exceeds `max_capacity` or is unavailable.
    void reserve(std::size_t capacity);
    /// Gives the free memory back to the system, including what other threads' caches hold and what
    /// `reserve` prepared.
    ///
    /// A cache keeps its blocks if its thread is in the middle of a call; all caches do if the
    /// system lacks membarrier(2). Returns the bytes by which the capacity fell. Pages between
    /// blocks in use are dropped too, but stay part of the capacity.
    std::size_t trim() noexcept;

    /// Sets the limit of the capacity, free memory included, as PoolOptions::max_capacity does for
    /// a new pool. 0 means no limit.
    ///
    /// If the capacity already exceeds `bytes`, free memory is released until it does not, as with
    /// `trim`. Blocks in use stay, and the pool does not grow until enough of them are freed.
    /// Throws AllocationError only if the global pool cannot be set up.
    void set_max_capacity(std::size_t bytes);
    /// Returns the limit of the capacity in bytes; 0 means no limit. Throws AllocationError only if
    /// the global pool cannot be set up.
    std::size_t max_capacity() const;

    /// Returns whether `p` is an address inside a block in use of this pool.
    ///
    /// For a freed block it returns false, unless the block waits in another thread's cache or
    /// between threads, where finding it would need a search. With checks the result is always
    /// exact.
    bool owns(const void* p) const noexcept;
    /// Returns the usable bytes of the block that begins at `p`, at least as many as were
    /// requested; 0 for any other pointer.
    std::size_t usable_size(const void* p) const;

    /// Returns the pool's statistics, summed over all threads. They are exact if no call is under
    /// way.
    PoolStatistics statistics() const;
    /// Returns the bytes of the blocks in use.
    std::size_t get_total_allocated() const noexcept;
    /// Returns the committed bytes, free memory included.
    std::size_t get_total_capacity() const noexcept;
    /// Returns `get_total_allocated()` divided by `get_total_capacity()`; 0 if nothing is
    /// committed.
    double get_utilization_ratio() const noexcept;
    /// Returns the number of allocations so far. Requests for 0 bytes are not counted; a
    /// `reallocate` that moves the block counts as one allocation and one deallocation.
    std::size_t get_allocation_count() const noexcept;
    /// Returns the number of deallocations so far. nullptr is not counted; a `reallocate` that
    /// moves the block counts as one allocation and one deallocation.
    std::size_t get_deallocation_count() const noexcept;
    /// Returns the pool's name, as PoolOptions::name gave it.
    const std::string& name() const noexcept;

private:
    friend struct detail::GlobalPool;
    friend struct detail::PoolAccess;
    constexpr MemoryPool(unsigned number, detail::Pool* pool) noexcept
        : place_(number), pool_(pool) {}

    void* allocate_slow(std::size_t bytes);
    void deallocate_slow(void* p, std::size_t bytes) noexcept;
    detail::ThreadCache& thread_cache() const noexcept;
    detail::Pool& pool() const;
    detail::Pool* pool_if_set_up() const noexcept { return pool_.load(std::memory_order_acquire); }

    detail::TablePlace place_;
    // Null in the global pool before its first use, and in a pool that was destroyed. The acquire
    // load above pairs with the release store of the set-up.
    mutable std::atomic<detail::Pool*> pool_;
};

/// Allows or forbids the thread of the process that trims pools with RetentionPolicy::background.
///
/// False ends the thread, returns when it has ended, and lets none start until a call with true.
/// Any thread may call it, except that one, on which PoolOptions::on_event may be called. The
/// caller must hold no lock that an `on_event` takes.
TENSORPOOL_API void allow_background_trimmer(bool allowed) noexcept;

namespace detail {
inline namespace abi_2 {
/// The storage of the global pool: constant-initialised and never destroyed, so that static
/// constructors and destructors can use it.
struct TENSORPOOL_API GlobalPool {
    static constexpr unsigned number = 0;
    union {
        MemoryPool pool;
    };
    constexpr GlobalPool() noexcept : pool(number, nullptr) {}
    ~GlobalPool() {}
    /// Sets the pool up, once, on the thread that uses it first, and returns it. Returns nullptr if
    /// the system has no memory.
    static Pool* set_up() noexcept;

    /// Prepares the pool, before its first use, to serve `malloc` for requests of at least
    /// `min_bytes` bytes. No request is then too large, unless TENSORPOOL_MAX_ALLOCATION says so.
    /// If small requests are served, those with an alignment of at most 16 bytes get finer sizes.
    static void serve_malloc(std::size_t min_bytes) noexcept;
    /// The result of a request. If `block` is nullptr and `is_limited` false, another allocator may
    /// serve the request.
    struct Answer {
        void* block = nullptr;
        /// TENSORPOOL_MAX_ALLOCATION or TENSORPOOL_MAX_CAPACITY refused the request.
        bool is_limited = false;
    };
    static Answer try_allocate(std::size_t bytes, std::size_t alignment) noexcept;
    static Answer try_allocate_zeroed(std::size_t bytes) noexcept;
    /// Makes the block of whole pages at `p` longer or shorter, to `bytes`, without copying its
    /// content: at the same address or, by moving its pages, at another. Returns nullptr, with the
    /// block unchanged, if that is not possible.
    static void* resize_pages(void* p, std::size_t bytes) noexcept;
    /// Returns whether a resize to `bytes` bytes must allocate a new block in place of the one at
    /// `p`: a BudgetScope of the calling thread charges another budget than the block's.
    static bool must_charge(const void* p, std::size_t bytes) noexcept;
    /// Gives the free memory of all pools of the process back to the system. Returns its bytes.
    static std::size_t trim_all() noexcept;
    /// Returns the pool if it was used before, or nullptr.
    static MemoryPool* used() noexcept;
    /// Frees the block at `p`. Returns false if `p`, an address within `pool_addresses`, lies in
    /// memory that others mapped there.
    static bool deallocate(void* p) noexcept;

private:
    static Pool* set_up_under_lock();
};
extern TENSORPOOL_API constinit GlobalPool global_pool;
}  // namespace abi_2
}  // namespace detail

// If the compiler sees that the pool is the global one, the look-up of the cache is shorter.
inline detail::ThreadCache& MemoryPool::thread_cache() const noexcept {
    static_assert(detail::GlobalPool::number == 0);
#if defined(__GNUC__)
    if (__builtin_constant_p(this == &detail::global_pool.pool) &&
        this == &detail::global_pool.pool) {
        return detail::first_thread_cache();
    }
#endif
    return detail::thread_cache(place_);
}

inline void* MemoryPool::allocate(std::size_t bytes) {
    const unsigned bucket = detail::bucket_of(bytes);
    if (bucket < detail::bucket_count) [[likely]] {
        void* const block = thread_cache().pop(bucket, bytes);
        if (block != nullptr) [[likely]]
            return block;
    }
    return allocate_slow(bytes);
}

inline void MemoryPool::deallocate(void* p, std::size_t bytes) noexcept {
    const unsigned bucket = detail::bucket_of(bytes);
    if (bucket < detail::bucket_count) [[likely]] {
        detail::ThreadCache& cache = thread_cache();
        if (!cache.is_guarded_or_null(p) && cache.push(bucket, p)) [[likely]]
            return;
    }
    deallocate_slow(p, bytes);
}

/// Returns the global pool, the pool of the process. It is set up on its first use from the
/// environment (see PoolOptions) and never destroyed. Any thread may call it, static constructors
/// and destructors included.
inline MemoryPool& get_global_memory_pool() noexcept {
    return detail::global_pool.pool;
}

}  // namespace tensorpool
