#include "events/report_at_exit.hpp"
#include "events/timeline.hpp"
#include "kinds/kinds.hpp"
#include "pool/pool.hpp"

namespace tensorpool {
namespace {

// Relaxed: set before there are other threads.
constinit std::atomic<bool> global_serves_malloc = false;
constinit std::atomic<bool> global_serves_small_malloc = false;

PoolOptions global_options() {
    PoolOptions options;
    options.name = "global";
    if (global_serves_malloc.load(std::memory_order_relaxed)) {
        options.max_allocation = std::numeric_limits<std::size_t>::max();
    }
    options = options_from_environment(options);
    if (options.max_capacity != 0 && options.initial_capacity > options.max_capacity) {
        platform::say(
            "TENSORPOOL_INITIAL_CAPACITY is more than TENSORPOOL_MAX_CAPACITY; used instead: %s",
            base::BytesText(options.max_capacity).c_str());
        options.initial_capacity = options.max_capacity;
    }
    return options;
}

detail::GlobalPool::Answer answer(void* block, const pages::Refusal& refusal) noexcept {
    const EntryKind kind = events::refusal_kind(events::limit_kind(refusal));
    return {.block = block, .is_limited = block == nullptr && kind == EntryKind::limit};
}

}  // namespace

namespace detail {
inline namespace abi_2 {

constinit GlobalPool global_pool;
static_assert(GlobalPool::number == blocks::PoolNumbers::global);

bool serves_malloc(unsigned pool_number) noexcept {
    return pool_number == GlobalPool::number &&
           global_serves_malloc.load(std::memory_order_relaxed);
}

Pool* GlobalPool::set_up() noexcept {
    try {
        // These calls come before the lock is taken: the C library may call malloc for them, under
        // locks of its own, and this pool may serve that malloc.
        events::report_at_exit_where_wanted();
        blocks::thread_registry().watch_forks();
        limits::read_named_budgets();
        return set_up_under_lock();
    } catch (...) {
        return nullptr;
    }
}

Pool* GlobalPool::set_up_under_lock() {
    const std::lock_guard guard(blocks::thread_registry().set_up_mutex());
    if (Pool* const pool = global_pool.pool.pool_if_set_up()) return pool;
    const PoolOptions options = global_options();
    Pool* const pool = Pool::make(options, number);
    if (pool == nullptr) return nullptr;
    if (global_serves_small_malloc.load(std::memory_order_relaxed)) pool->offer_finer_sizes();
    pages::SlowPath path;
    if (options.initial_capacity != 0 && !pool->reserve(options.initial_capacity, path)) {
        platform::say(
            "TENSORPOOL_INITIAL_CAPACITY is %s, which cannot be reserved: limit met: %s; used "
            "instead: 0 B",
            base::BytesText(options.initial_capacity).c_str(), path.refusal.limit);
    }
    global_pool.pool.pool_.store(pool, std::memory_order_release);
    return pool;
}

void GlobalPool::serve_malloc(std::size_t min_bytes) noexcept {
    const bool has_small = min_bytes < largest_block_bytes;
    global_serves_small_malloc.store(has_small, std::memory_order_relaxed);
    global_serves_malloc.store(true, std::memory_order_relaxed);
    // A library that was initialized earlier may have set the pool up.
    const std::lock_guard guard(blocks::thread_registry().set_up_mutex());
    Pool* const pool = global_pool.pool.pool_if_set_up();
    if (has_small && pool != nullptr) pool->offer_finer_sizes();
}

GlobalPool::Answer GlobalPool::try_allocate(std::size_t bytes, std::size_t alignment) noexcept {
    Pool* const pool = PoolAccess::find(global_pool.pool);
    if (pool == nullptr) return {};
    if (bytes > largest_block_bytes && alignment <= pages::page_bytes) {
        if (void* const block = kinds::take_free_pages(pool->parts(), bytes))
            return {.block = block};
    }
    pages::SlowPath path;
    void* block = nullptr;
    if (bytes != 0) {
        block = pool->allocate({bytes, alignment}, path);
    } else if (pool->parts().is_hardened()) {
        block = kinds::allocate_nothing(pool->parts(), alignment, path);
        pool->end_slow_path(path);
    }
    return answer(block, path.refusal);
}

GlobalPool::Answer GlobalPool::try_allocate_zeroed(std::size_t bytes) noexcept {
    Pool* const pool = PoolAccess::find(global_pool.pool);
    if (pool == nullptr) return {};
    pages::SlowPath path;
    void* const block = pool->allocate_zeroed(bytes, path);
    return answer(block, path.refusal);
}

void* GlobalPool::resize_pages(void* p, std::size_t bytes) noexcept {
    Pool* const pool = global_pool.pool.pool_if_set_up();
    return pool == nullptr ? nullptr : pool->resize_pages(p, bytes);
}

std::size_t GlobalPool::trim_all() noexcept {
    return trim_all_pools();
}

MemoryPool* GlobalPool::used() noexcept {
    return global_pool.pool.pool_if_set_up() == nullptr ? nullptr : &global_pool.pool;
}

bool GlobalPool::must_charge(const void* p, std::size_t bytes) noexcept {
    Pool* const pool = global_pool.pool.pool_if_set_up();
    return pool != nullptr && kinds::must_charge(pool->parts(), p, bytes);
}

bool GlobalPool::deallocate(void* p) noexcept {
    const pages::AddressSpace& space = pages::address_space();
    if (space.map().at(p).empty() && !space.is_lent(p)) [[unlikely]]
        return false;
    global_pool.pool.deallocate(p);
    return true;
}

void record_allocated_by(void* block, AllocatedBy by) noexcept {
    kinds::record_allocated_by(PoolAccess::of(global_pool.pool).parts(), block, by);
}

void free_in_global_pool(void* p, const FreedAs& freed) noexcept {
    Pool& pool = PoolAccess::of(global_pool.pool);
    // `freed` names no bucket here: the block may have a finer size.
    pool.deallocate(p, pool.parts().is_hardened() ? freed : FreedAs());
}

Pool* find_pool(const MemoryPool& pool, const void* block) noexcept {
    if (&pool == &global_pool.pool) return GlobalPool::set_up();
    events::stop_at_misuse({.kind = events::MisuseKind::outlived_owner, .pointer = block},
                           "a call on a pool that was destroyed before, for the block %p; "
                           "expected the pool to outlive "
                           "its blocks and handles",
                           block);
}

Pool& require_pool(const MemoryPool& pool, const void* block) {
    Pool* const found = find_pool(pool, block);
    // Thrown without a lock: the C library may call malloc for it.
    if (found == nullptr)
        throw AllocationError("global", 0, 0, 0, "memory for the pool's records", 0);
    return *found;
}

}  // namespace abi_2
}  // namespace detail

detail::Pool& MemoryPool::pool() const {
    detail::Pool* const pool = pool_if_set_up();
    return pool != nullptr ? *pool : detail::require_pool(*this, nullptr);
}

}  // namespace tensorpool
