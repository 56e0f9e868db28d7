#include "interpose/blocks_of_pool.hpp"
#include "pages/look_ups.hpp"

#include <cerrno>
#include <cstring>

namespace tensorpool::interpose {
namespace {

using detail::GlobalPool;

void* out_of_memory() noexcept {
    errno = ENOMEM;
    return nullptr;
}

// The next allocator may serve what the pool cannot, unless a limit that the user set was met.

void* next_aligned(std::size_t bytes, std::size_t alignment) noexcept {
    return next_block(bytes, [=]() -> void* {
        void* block = nullptr;
        const int error = next_posix_memalign(&block, std::max(alignment, sizeof(void*)), bytes);
        if (error != 0) errno = error;
        return error == 0 ? block : nullptr;
    });
}

// Operators that the program defines may call some of the library's, and pass on other sizes.
bool is_known(AllocatedBy by) noexcept {
    return by == AllocatedBy::malloc || has_own_operators();
}

/// Whether the pool does not even try: where it must not be called, and for a size that no process
/// has addresses for, which the next allocator refuses at once. The pool would look for memory
/// first.
bool is_for_next(std::size_t bytes) noexcept {
    return must_stay_out() || bytes > max_request;
}

void* record(void* block, AllocatedBy by) noexcept {
    if (is_hardened() && is_known(by)) detail::record_allocated_by(block, by);
    return block;
}

}  // namespace

bool gave_memory_back() noexcept {
    if (must_stay_out()) return false;
    const Visit visit;
    return GlobalPool::trim_all() != 0;
}

std::size_t hardened_size(const void* p) noexcept {
    if (!must_stay_out() || !stays_out()) return detail::bytes_of_block_in_use(p);
    const pages::PageEntry entry(detail::pool_addresses.page_word(p));
    if (!entry.is_large_in_use()) return detail::bytes_of_block(p);
    // The pages behind it may be guarded. It may be a block of 0 bytes.
    const std::uint64_t bytes = entry.span()->requested_bytes.load(std::memory_order_relaxed);
    return bytes == pages::Span::nothing ? 0 : bytes;
}

void* allocate_behind(std::size_t bytes) noexcept {
    return next_malloc(bytes);
}

void* allocate_slowly(std::size_t bytes, AllocatedBy by) noexcept {
    if (is_for_next(bytes)) [[unlikely]]
        return next_malloc(bytes);
    const Visit visit;
    const auto [block, is_limited] = GlobalPool::try_allocate(bytes, base::finer_alignment);
    if (block != nullptr) return record(block, by);
    return is_limited ? out_of_memory() : next_malloc(bytes);
}

void* allocate_zeroed_in_pool(std::size_t bytes) noexcept {
    if (bytes <= detail::largest_block_bytes) {
        void* const block = allocate_in_pool(bytes, AllocatedBy::malloc);
        return block == nullptr ? nullptr : std::memset(block, 0, bytes);
    }
    if (is_for_next(bytes)) [[unlikely]]
        return next_calloc(1, bytes);
    const Visit visit;
    const auto [block, is_limited] = GlobalPool::try_allocate_zeroed(bytes);
    if (block != nullptr) return record(block, AllocatedBy::malloc);
    return is_limited ? out_of_memory() : next_calloc(1, bytes);
}

void* allocate_aligned_in_pool(std::size_t bytes, std::size_t alignment, AllocatedBy by) noexcept {
    if (is_for_next(bytes)) [[unlikely]]
        return next_aligned(bytes, alignment);
    const Visit visit;
    const auto [block, is_limited] = GlobalPool::try_allocate(bytes, alignment);
    if (block != nullptr) return record(block, by);
    return is_limited ? out_of_memory() : next_aligned(bytes, alignment);
}

void* resize_in_pool(void* p, std::size_t bytes) noexcept {
    if (must_stay_out()) [[unlikely]]
        return nullptr;
    const Visit visit;
    return GlobalPool::resize_pages(p, bytes);
}

void* as_array(void* block) noexcept {
    const bool is_recorded = block != nullptr && may_be_of_pool(block) && is_of_pool(block);
    return is_recorded ? record(block, AllocatedBy::new_array) : block;
}

void free_slowly(void* p, std::size_t bytes, std::size_t alignment, AllocatedBy by) noexcept {
    if (must_stay_out()) [[unlikely]]
        return is_of_pool(p) ? free_when_outside(p) : next_free(p);
    const Visit visit;
    if (is_hardened() && is_of_pool(p)) {
        return detail::free_in_global_pool(
            p, is_known(by) ? detail::FreedAs{bytes, alignment, by} : detail::FreedAs{});
    }
    if (!GlobalPool::deallocate(p)) next_free(p);
}

}  // namespace tensorpool::interpose
