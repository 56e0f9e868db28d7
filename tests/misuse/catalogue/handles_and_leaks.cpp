// Handles that outlive their pool, pools that end with blocks in use, and moved-from handles.

#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/pooled_array.hpp>

#include "misuse/catalogue/catalogue.hpp"

namespace tensorpool::misuse {
namespace {

/// A pool whose memory stays when it ends, as that of most objects on a stack does.
class ShortLivedPool {
public:
    ShortLivedPool() : pool_(new (memory_) MemoryPool(pool_options("short-lived"))) {}
    MemoryPool& get() noexcept { return *hidden(pool_); }
    void end() { std::destroy_at(pool_); }

private:
    alignas(MemoryPool) static inline std::byte memory_[sizeof(MemoryPool)];
    MemoryPool* pool_;
};

template <std::size_t bytes>
void handle_outlives_pool() {
    ShortLivedPool pool;
    const PooledAllocation handle(pool.get(), bytes);
    pool.end();
}
void array_outlives_pool() {
    ShortLivedPool pool;
    const PooledArray<float> array(pool.get(), 1000);
    pool.end();
}
void free_after_the_pools_end() {
    ShortLivedPool pool;
    void* const p = pool.get().allocate(small);
    pool.get().deallocate(p);
    pool.end();
    pool.get().deallocate(p);
}
void free_after_the_pools_end_sized() {
    ShortLivedPool pool;
    void* const p = pool.get().allocate(small);
    pool.get().deallocate(p, small);
    pool.end();
    pool.get().deallocate(p, small);
}
void allocate_after_the_pools_end() {
    ShortLivedPool pool;
    pool.end();
    (void)pool.get().allocate(small);
}
void allocate_large_after_the_pools_end() {
    ShortLivedPool pool;
    pool.end();
    (void)pool.get().try_allocate(large);
}
void reallocate_after_the_pools_end() {
    ShortLivedPool pool;
    void* const p = pool.get().allocate(small);
    pool.get().deallocate(p);
    pool.end();
    (void)pool.get().reallocate(p, small, 1000);
}
void query_after_the_pools_end() {
    ShortLivedPool pool;
    pool.end();
    expect_harmless(pool.get().usable_size(&pool) == 0);
}
void write_after_the_pools_end() {
    ShortLivedPool pool;
    void* const p = pool.get().allocate(large);
    pool.get().deallocate(p);
    pool.end();
    write(hidden(p), 0);
}
void end_a_pool_twice() {
    ShortLivedPool pool;
    pool.end();
    pool.end();
    expect_harmless(true);
}

template <std::size_t bytes>
void leak_blocks() {
    MemoryPool pool(pool_options("mine"));
    (void)pool.allocate(bytes);
}
void leak_by_release() {
    MemoryPool pool(pool_options("mine"));
    PooledAllocation handle(pool, small);
    (void)handle.release();
}
void leak_by_detach() {
    MemoryPool pool(pool_options("mine"));
    PooledAllocation handle(pool, small);
    (void)handle.detach();
}

void use_moved_from_handle() {
    PooledAllocation handle(pool(), small);
    const PooledAllocation other(std::move(handle));
    PooledAllocation& from = *hidden(&handle);
    from.reset();
    expect_harmless(from.get() == nullptr && from.size() == 0 && from.as<int>().empty());
}
void write_by_moved_from_handle() {
    PooledAllocation handle(pool(), small);
    const PooledAllocation other(std::move(handle));
    write(hidden(hidden(&handle)->get()), 0);
}
void move_handle_to_itself() {
    PooledAllocation handle(pool(), small);
    PooledAllocation& same = *hidden(&handle);
    handle = std::move(same);
    expect_harmless(handle.size() == small && pool().owns(handle.get()));
}
void end_copied_bytes_of_a_handle() {
    PooledAllocation handle(pool(), small);
    alignas(PooledAllocation) std::byte copy[sizeof handle];
    std::memcpy(copy, static_cast<void*>(&handle), sizeof handle);
    std::destroy_at(hidden(reinterpret_cast<PooledAllocation*>(copy)));
}

constexpr Case cases[] = {
    {"handle_outlives_pool",
     handle_outlives_pool<small>,
     {outlived_owner, outlived_owner, leak, outlived_owner, leak}},
    {"handle_outlives_pool_large",
     handle_outlives_pool<large>,
     {outlived_owner, outlived_owner, leak, outlived_owner, leak}},
    {"array_outlives_pool",
     array_outlives_pool,
     {outlived_owner, outlived_owner, leak, outlived_owner, leak}},
    {"free_after_the_pools_end", free_after_the_pools_end, always(outlived_owner)},
    {"free_after_the_pools_end_with_its_size", free_after_the_pools_end_sized,
     always(outlived_owner)},
    {"allocate_after_the_pools_end", allocate_after_the_pools_end, always(outlived_owner)},
    {"allocate_300_KiB_after_the_pools_end", allocate_large_after_the_pools_end,
     always(outlived_owner)},
    {"reallocate_after_the_pools_end", reallocate_after_the_pools_end, always(outlived_owner)},
    {"usable_size_after_the_pools_end", query_after_the_pools_end, always(harmless)},
    {"write_after_the_pools_end", write_after_the_pools_end, always(by_system)},
    {"end_a_pool_twice", end_a_pool_twice, always(harmless)},
    {"leak_100_B", leak_blocks<small>, {passes, passes, leak, passes, leak}},
    {"leak_300_KiB", leak_blocks<large>, {passes, passes, leak, passes, leak}},
    {"leak_by_release", leak_by_release, {passes, passes, leak, passes, leak}},
    {"leak_by_detach", leak_by_detach, {passes, passes, leak, passes, leak}},
    {"use_moved_from_handle", use_moved_from_handle, always(harmless)},
    {"write_by_moved_from_handle", write_by_moved_from_handle, always(by_system)},
    {"move_handle_to_itself", move_handle_to_itself, always(harmless)},
    {"end_copied_bytes_of_a_handle", end_copied_bytes_of_a_handle, always(double_free)},
};

}  // namespace

std::span<const Case> handles_and_leaks() noexcept {
    return cases;
}

}  // namespace tensorpool::misuse
