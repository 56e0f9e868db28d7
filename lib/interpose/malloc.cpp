#include <cerrno>
#include <cstring>

#include "interpose/blocks_of_pool.hpp"

namespace tensorpool::interpose {
namespace {

void* out_of_memory() noexcept {
    errno = ENOMEM;
    return nullptr;
}

constexpr FreedAs by_free{.by = AllocatedBy::malloc};

// A larger block is given room to grow.
constexpr std::size_t large = std::size_t{1} << 20;

/// Returns whether a block has room for a size and would not waste half of its bytes.
bool suits(std::size_t usable, std::size_t bytes) noexcept {
    return bytes <= usable && bytes >= usable / 2;
}

/// Returns whether the pool must record exactly the requested size: `free_sized` is checked with
/// it. Larger blocks are checked only as far as `suits`, because they would be copied too often.
bool is_exact(std::size_t usable) noexcept {
    return usable < large && is_hardened();
}

/// Returns whether a block can stay where it is.
bool may_stay(std::size_t usable, std::size_t bytes) noexcept {
    return is_exact(usable) ? bytes == usable : suits(usable, bytes);
}

/// Returns the size to request if a block of `usable` bytes has to grow. The pool has 32 sizes
/// between two powers of two, so a block that grows in small steps would be copied up to 32 times
/// on the way. With room for an eighth more it is copied six times. (Growth to 128 MiB in steps of
/// 64 KiB takes 0.3 s instead of 0.9 s.)
std::size_t with_room_to_grow(std::size_t usable, std::size_t bytes) noexcept {
    return usable < large || bytes <= usable ? bytes : std::max(bytes, usable + usable / 8);
}

/// Copies the content into another block and frees the old one. If no block can be had, a block
/// that was to shrink stays, unless its size is exact or a budget must be charged for it.
void* move(void* p, std::size_t usable, std::size_t bytes) noexcept {
    void* moved = allocate(with_room_to_grow(usable, bytes), AllocatedBy::malloc);
    if (moved == nullptr) moved = allocate(bytes, AllocatedBy::malloc);
    if (moved == nullptr)
        return bytes <= usable && !is_exact(usable) && !must_charge(p, bytes) ? p : nullptr;
    std::memcpy(moved, p, std::min(usable, bytes));
    deallocate(p, by_free);
    return moved;
}

/// Reallocates a block of another allocator. A large block that the pool once could not serve stays
/// there: otherwise it would be copied each time it grows, and would exist twice during each copy.
/// Inside a scope of a budget it moves, so that it is charged.
void* reallocate_foreign(void* p, std::size_t bytes) noexcept {
    const std::size_t usable = next_usable_size(p);
    if (bytes == 0 || !is_for_pool(bytes) || (is_for_pool(usable) && !must_charge(p, bytes)))
        return next_realloc(p, bytes);
    return move(p, usable, bytes);
}

void* reallocate(void* p, std::size_t bytes) noexcept {
    if (p == nullptr) return allocate(bytes, AllocatedBy::malloc);
    if (!is_of_pool(p)) return reallocate_foreign(p, bytes);
    if (bytes == 0) {
        free_in_pool(p, by_free);
        return nullptr;
    }
    const std::size_t usable = usable_size(p);
    if (usable == 0 && !is_hardened()) {  // no block in use, which the free reports
        free_in_pool(p, by_free);
        return out_of_memory();
    }
    if (may_stay(usable, bytes) && !must_charge(p, bytes)) return p;
    if (void* const resized = resize_in_pool(p, bytes)) return resized;
    return move(p, usable, bytes);
}

/// Returns the size with which a free is checked: `bytes`, or the recorded one if `realloc` may
/// have left `bytes` in a large block.
std::size_t size_to_check(const void* p, std::size_t bytes) noexcept {
    if (bytes < large / 2 || !is_hardened() || !may_be_of_pool(p)) return bytes;
    const pages::PageEntry entry(detail::pool_addresses.page_word(p));
    if (entry.kind() != pages::PageKind::large_in_use) return bytes;
    // Relaxed: the caller holds the block. If it does not, the free reports that.
    const std::size_t recorded = entry.span()->requested_bytes.load(std::memory_order_relaxed);
    return recorded >= large && suits(recorded, bytes) ? recorded : bytes;
}

}  // namespace
}  // namespace tensorpool::interpose

namespace interpose = tensorpool::interpose;

extern "C" {

TENSORPOOL_API void* malloc(std::size_t bytes) noexcept {
    return interpose::allocate(bytes, interpose::AllocatedBy::malloc);
}

TENSORPOOL_API void free(void* p) noexcept {
    interpose::deallocate(p, interpose::by_free);
}

// Of C23. The C library of Debian 12 does not declare them.

TENSORPOOL_API void free_sized(void* p, std::size_t bytes) noexcept {
    // It may have been aligned before a realloc that kept the block.
    interpose::deallocate(
        p, {.bytes = interpose::size_to_check(p, bytes), .by = interpose::AllocatedBy::malloc});
}

TENSORPOOL_API void free_aligned_sized(void* p, std::size_t alignment, std::size_t bytes) noexcept {
    interpose::deallocate(p, {.bytes = interpose::size_to_check(p, bytes),
                              .alignment = alignment,
                              .by = interpose::AllocatedBy::malloc});
}

TENSORPOOL_API void* calloc(std::size_t count, std::size_t bytes) noexcept {
    std::size_t product = 0;
    if (__builtin_mul_overflow(count, bytes, &product)) return interpose::out_of_memory();
    return interpose::is_for_pool(product) ? interpose::allocate_zeroed_in_pool(product)
                                           : interpose::next_calloc(count, bytes);
}

TENSORPOOL_API void* realloc(void* p, std::size_t bytes) noexcept {
    return interpose::reallocate(p, bytes);
}

TENSORPOOL_API void* reallocarray(void* p, std::size_t count, std::size_t bytes) noexcept {
    std::size_t product = 0;
    if (__builtin_mul_overflow(count, bytes, &product)) return interpose::out_of_memory();
    return realloc(p, product);  // the program's, if it has a malloc of its own
}

TENSORPOOL_API std::size_t malloc_usable_size(void* p) noexcept {
    return interpose::usable_size(p);
}
}
