#pragma once

/// @file
/// The pool. Sizes are bytes unless a name says otherwise.

#include <atomic>
#include <cstddef>
#include <string>

#include <tensorpool/detail/buckets.hpp>
#include <tensorpool/detail/thread_cache.hpp>
#include <tensorpool/errors.hpp>
#include <tensorpool/export.hpp>
#include <tensorpool/pool_options.hpp>
#include <tensorpool/statistics.hpp>

namespace tensorpool {

namespace detail {
inline namespace abi_2 {
class Pool;
struct GlobalPool;
}  // namespace abi_2
}  // namespace detail

/// A thread-safe pool of memory blocks. Any thread may call any member at any time, and free what
/// another thread allocated; only the destructor wants to be alone. Blocks never move and never
/// overlap, and the pool never writes into one.
///
/// Up to 64 KiB a block comes from one of eleven power-of-two buckets; above, from whole pages.
class TENSORPOOL_API MemoryPool {
public:
    /// Commits and touches `initial_capacity` bytes. Throws AllocationError when they cannot be
    /// had.
    explicit MemoryPool(std::size_t initial_capacity = 0);
    /// Throws std::invalid_argument for options that make no sense, and AllocationError as above.
    explicit MemoryPool(const PoolOptions& options);
    /// Gives all memory back, blocks in use included. No other call may be under way. Waits while
    /// the background trimmer, or a thread that answers a request to trim, looks at the pool: the
    /// caller must hold no lock that `PoolOptions::on_event` takes.
    ~MemoryPool();
    MemoryPool(const MemoryPool&) = delete;
    MemoryPool& operator=(const MemoryPool&) = delete;

    /// A block of at least `bytes`, aligned to 64; nullptr for 0. Its content is undefined. Throws
    /// AllocationError (a std::bad_alloc) when it cannot be had; the pool is then as before.
    void* allocate(std::size_t bytes);
    /// As above, aligned to `alignment`. Throws std::invalid_argument unless that is a power of
    /// two.
    void* allocate(std::size_t bytes, std::size_t alignment);
    /// As above, but returns nullptr instead of throwing.
    void* try_allocate(std::size_t bytes, std::size_t alignment = 64) noexcept;
    /// As `allocate(bytes)`, for who writes all of it: what of a block above 64 KiB comes fresh
    /// from the system is made resident by one call to it (madvise with MADV_POPULATE_WRITE on
    /// Linux), which costs a tenth to a third less than page faults do, and a fifth to a
    /// twentieth with larger pages, which it asks for as `HugePages::buckets` says.
    void* allocate_prefaulted(std::size_t bytes);
    /// As above, but returns nullptr instead of throwing.
    void* try_allocate_prefaulted(std::size_t bytes) noexcept;
    /// A block of `count * element_bytes` zeros. Throws AllocationError when the product overflows.
    void* allocate_zeroed(std::size_t count, std::size_t element_bytes);
    /// As above, but returns nullptr instead of throwing.
    void* try_allocate_zeroed(std::size_t count, std::size_t element_bytes) noexcept;
    /// Makes a block of default alignment hold `new_bytes`, moving it if need be; the first
    /// min(old_bytes, new_bytes) bytes are kept. With nullptr and 0 it allocates; with `new_bytes`
    /// 0 it frees and returns nullptr. When it throws, the old block stands.
    void* reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes);

    /// Gives a block back, whatever its alignment; nullptr is ignored. A pointer that is not a
    /// block of this pool stops the program with a line on stderr that says what it is.
    void deallocate(void* p) noexcept;
    /// The faster one, for blocks of default alignment that this pool's functions gave, not
    /// `malloc`: `bytes` is anything from what was asked for to `usable_size(p)`.
    void deallocate(void* p, std::size_t bytes) noexcept;
    /// For blocks made with this alignment.
    void deallocate(void* p, std::size_t bytes, std::size_t alignment) noexcept;

    /// Commits memory until capacity is at least `capacity`, touched and ready. Throws
    /// AllocationError, changing nothing, when that is beyond `max_capacity` or cannot be had.
    void reserve(std::size_t capacity);
    /// Gives back to the system what is free, what other threads' caches hold and what `reserve`
    /// prepared too; a cache whose thread is in the midst of a call keeps what it has, and all do
    /// where the system has no membarrier(2). Returns the bytes by which capacity fell; pages
    /// between blocks in use are dropped too and stay part of it.
    std::size_t trim() noexcept;

    /// From now on capacity grows to at most `bytes`, free memory included, as
    /// `PoolOptions::max_capacity` says for a new pool; 0 means no limit. Is there more already,
    /// free memory is given back first, as by `trim` but no more than that takes; blocks in use
    /// stay, and nothing grows until they have gone. Throws AllocationError only where the global
    /// pool could not be set up.
    void set_max_capacity(std::size_t bytes);
    /// The limit in force; 0 means none. Throws as above.
    std::size_t max_capacity() const;

    /// True for any address inside a block of this pool in use. For a block that was freed it is
    /// false, unless the block waits in the cache of another thread or between threads, where to
    /// find it would mean to search; with checks it is always exact.
    bool owns(const void* p) const noexcept;
    /// Bytes that may be used of the block that begins at `p`; 0 for any other pointer.
    std::size_t usable_size(const void* p) const;

    /// All figures of this pool, summed over threads. Exact when no call is under way.
    PoolStatistics statistics() const;
    /// Bytes of the blocks in use.
    std::size_t get_total_allocated() const noexcept;
    /// Bytes committed, free memory included.
    std::size_t get_total_capacity() const noexcept;
    /// The first over the second; 0 when nothing is committed.
    double get_utilization_ratio() const noexcept;
    /// Null and zero-size calls are not counted; a `reallocate` that moves counts as one of each.
    std::size_t get_allocation_count() const noexcept;
    std::size_t get_deallocation_count() const noexcept;
    const std::string& name() const noexcept;

private:
    friend struct detail::GlobalPool;
    constexpr MemoryPool(unsigned number, detail::Pool* pool) noexcept
        : place_(number), pool_(pool) {}

    void* allocate_slow(std::size_t bytes);
    void deallocate_slow(void* p, std::size_t bytes) noexcept;
    detail::ThreadCache& thread_cache() const noexcept;
    detail::Pool& pool() const;
    detail::Pool* pool_if_set_up() const noexcept { return pool_.load(std::memory_order_acquire); }

    detail::TablePlace place_;
    // Null only in the global pool before its first use. Pairs with the release store of set-up.
    mutable std::atomic<detail::Pool*> pool_;
};

/// Whether pools with `RetentionPolicy::background` may have their thread, the one of the process.
/// False ends it, returns when it is gone, and lets none start until true allows it again. Any
/// thread but that one, on which PoolOptions::on_event may be called; the caller must hold no lock
/// that an `on_event` takes.
TENSORPOOL_API void allow_background_trimmer(bool allowed) noexcept;

namespace detail {
inline namespace abi_2 {
/// The global pool's storage: constant-initialised, never destroyed, so that static constructors
/// and destructors can use it.
struct TENSORPOOL_API GlobalPool {
    static constexpr unsigned number = 0;
    union {
        MemoryPool pool;
    };
    constexpr GlobalPool() noexcept : pool(number, nullptr) {}
    ~GlobalPool() {}
    /// Makes it ready for use, once, whichever thread comes first.
    static Pool& set_up();

    /// For what serves malloc by this pool, requests of `min_bytes` and more, before the pool's
    /// first use: no request is too large, unless TENSORPOOL_MAX_ALLOCATION says so, and where
    /// small ones come there are finer sizes for those that want an alignment of 16 bytes at most.
    static void serve_malloc(std::size_t min_bytes) noexcept;
    /// What became of a request: no block and not limited, and another allocator may serve it.
    struct Answer {
        void* block = nullptr;
        /// Refused for TENSORPOOL_MAX_ALLOCATION or TENSORPOOL_MAX_CAPACITY.
        bool is_limited = false;
    };
    static Answer try_allocate(std::size_t bytes, std::size_t alignment) noexcept;
    static Answer try_allocate_zeroed(std::size_t bytes) noexcept;
    /// The block at `p` with room for `bytes` and its content, without a copy: at the same address
    /// or, its pages moved, at another. nullptr, and it is as it was, where that cannot be had.
    static void* lengthen(void* p, std::size_t bytes) noexcept;
    /// False where `p`, which lies in `pool_addresses`, lies in what others mapped there.
    static bool deallocate(void* p) noexcept;

private:
    /// nullptr when it cannot be made ready.
    static Pool* try_set_up() noexcept;
    /// nullptr when the system has no memory for its records.
    static Pool* set_up_under_lock();
};
extern TENSORPOOL_API constinit GlobalPool global_pool;
}  // namespace abi_2
}  // namespace detail

// Where the compiler sees that the pool is the global one, it need not look for the place.
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
    if (p != nullptr && bucket < detail::bucket_count) [[likely]] {
        if (thread_cache().push(bucket, p)) [[likely]]
            return;
    }
    deallocate_slow(p, bytes);
}

/// The pool behind tensor constructors: one for the process, set up on its first use from the
/// environment (see PoolOptions), never destroyed.
inline MemoryPool& get_global_memory_pool() noexcept {
    return detail::global_pool.pool;
}

}  // namespace tensorpool
