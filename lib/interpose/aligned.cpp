#include "interpose/blocks_of_pool.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::interpose {

int allocate_aligned(void** to, std::size_t alignment, std::size_t bytes, AllocatedBy by) noexcept {
    if (!is_for_pool(bytes)) return next_posix_memalign(to, alignment, bytes);
    const platform::SystemCalls system_calls;
    void* const block = allocate_aligned_in_pool(bytes, alignment, by);
    if (block == nullptr) return ENOMEM;
    *to = block;
    return 0;
}

namespace {

constexpr std::size_t max_alignment = SIZE_MAX / 2 + 1;
// The alignment of every block: two pointers.
constexpr std::size_t min_alignment = 2 * sizeof(void*);

/// Allocates like the C library's functions: an alignment that is not a power of two is rounded up
/// to the next one.
void* aligned_or_null(std::size_t alignment, std::size_t bytes) noexcept {
    if (alignment <= min_alignment) return allocate(bytes, AllocatedBy::malloc);
    if (alignment > max_alignment) {
        errno = EINVAL;
        return nullptr;
    }
    void* block = nullptr;
    const int error =
        allocate_aligned(&block, std::bit_ceil(alignment), bytes, AllocatedBy::malloc);
    if (error == 0) return block;
    errno = error;
    return nullptr;
}

}  // namespace
}  // namespace tensorpool::interpose

namespace interpose = tensorpool::interpose;
namespace platform = tensorpool::platform;

extern "C" {

TENSORPOOL_API int posix_memalign(void** to, std::size_t alignment, std::size_t bytes) noexcept {
    if (!std::has_single_bit(alignment) || alignment < sizeof(void*)) return EINVAL;
    const int error =
        interpose::allocate_aligned(to, alignment, bytes, interpose::AllocatedBy::malloc);
    if (error != 0) errno = error;  // programs rely on it, since the C library does the same
    return error;
}

TENSORPOOL_API void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
    return interpose::aligned_or_null(alignment, bytes);
}

TENSORPOOL_API void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
    return interpose::aligned_or_null(alignment, bytes);
}

TENSORPOOL_API void* valloc(std::size_t bytes) noexcept {
    return interpose::aligned_or_null(platform::page_bytes(), bytes);
}

TENSORPOOL_API void* pvalloc(std::size_t bytes) noexcept {
    const std::size_t page = platform::page_bytes();
    if (bytes > SIZE_MAX - page) {
        errno = ENOMEM;
        return nullptr;
    }
    return interpose::aligned_or_null(page, (bytes + page - 1) / page * page);
}
}
