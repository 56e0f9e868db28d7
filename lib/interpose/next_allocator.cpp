#include "interpose/next_allocator.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "platform/platform.hpp"
#include "platform/process/next_function_linux.hpp"

namespace tensorpool::interpose {
namespace {

constexpr std::size_t unit = 64;
constexpr std::size_t capacity = std::size_t{16} << 10;

alignas(unit) constinit unsigned char buffer[capacity] = {};
constinit std::size_t used = 0;

}  // namespace

// The size of each block is stored before it, in a unit of its own.
void* take_from_bootstrap_buffer(std::size_t bytes, std::size_t alignment) noexcept {
    if (alignment > unit || bytes > capacity - used) return nullptr;
    const std::size_t taken = unit + (bytes + unit - 1) / unit * unit;
    if (taken > capacity - used) return nullptr;
    unsigned char* const head = buffer + used;
    std::memcpy(head, &bytes, sizeof bytes);
    used += taken;
    return head + unit;
}

bool bootstrap_buffer_is_used() noexcept {
    return used != 0;
}

bool is_in_bootstrap_buffer(const void* p) noexcept {
    return reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(buffer) <
           capacity;
}

std::size_t bytes_in_bootstrap_buffer(const void* p) noexcept {
    std::size_t bytes = 0;
    std::memcpy(&bytes, static_cast<const unsigned char*>(p) - unit, sizeof bytes);
    return bytes;
}

namespace {

constinit thread_local bool looking [[gnu::tls_model("initial-exec")]] = false;

// The functions that were found, for the wrappers below, which check the bootstrap buffer first.
constinit decltype(next_realloc)::Pointer found_realloc = nullptr;
constinit decltype(next_free)::Pointer found_free = nullptr;
constinit decltype(next_usable_size)::Pointer found_usable_size = nullptr;

void free_beside_buffer(void* p) noexcept {
    if (!is_in_bootstrap_buffer(p)) found_free(p);
}
std::size_t usable_size_beside_buffer(void* p) noexcept {
    return is_in_bootstrap_buffer(p) ? bytes_in_bootstrap_buffer(p) : found_usable_size(p);
}
void* realloc_beside_buffer(void* p, std::size_t bytes) noexcept {
    if (!is_in_bootstrap_buffer(p)) return found_realloc(p, bytes);
    void* const moved = next_malloc(bytes);
    if (moved != nullptr) std::memcpy(moved, p, std::min(bytes, bytes_in_bootstrap_buffer(p)));
    return moved;
}

template <class Next>
typename Next::Pointer find(const Next&, const char* name) noexcept {
    const auto found = reinterpret_cast<typename Next::Pointer>(platform::next_function(name));
    if (found == nullptr) {
        platform::fail("interpose: no library behind this one has %s; expected a C library", name);
    }
    return found;
}

void find_all() noexcept {
    const auto malloc = find(next_malloc, "malloc");
    const auto calloc = find(next_calloc, "calloc");
    const auto posix_memalign = find(next_posix_memalign, "posix_memalign");
    found_realloc = find(next_realloc, "realloc");
    found_free = find(next_free, "free");
    found_usable_size = find(next_usable_size, "malloc_usable_size");
    // Checked after the last lookup: frees have to check the buffer only if a lookup allocated from
    // it.
    const bool used = bootstrap_buffer_is_used();
    next_free.set(used ? free_beside_buffer : found_free);
    next_realloc.set(used ? realloc_beside_buffer : found_realloc);
    next_usable_size.set(used ? usable_size_beside_buffer : found_usable_size);
    next_malloc.set(malloc);
    next_calloc.set(calloc);
    next_posix_memalign.set(posix_memalign);
}

/// Finds the next allocator. Returns false inside the lookup itself.
bool is_found() noexcept {
    if (looking) return false;
    looking = true;
    find_all();
    looking = false;
    return true;
}

void* or_enomem(void* block) noexcept {
    if (block == nullptr) errno = ENOMEM;
    return block;
}

// The first call of each kind comes here.

void* first_malloc(std::size_t bytes) noexcept {
    return is_found() ? next_malloc(bytes) : or_enomem(take_from_bootstrap_buffer(bytes, 1));
}
void* first_calloc(std::size_t count, std::size_t bytes) noexcept {
    if (is_found()) return next_calloc(count, bytes);
    std::size_t product = 0;
    if (__builtin_mul_overflow(count, bytes, &product)) return or_enomem(nullptr);
    return or_enomem(take_from_bootstrap_buffer(product, 1));
}
void* first_realloc(void* p, std::size_t bytes) noexcept {
    if (is_found()) return next_realloc(p, bytes);
    void* const moved = or_enomem(take_from_bootstrap_buffer(bytes, 1));
    if (moved != nullptr && p != nullptr && is_in_bootstrap_buffer(p)) {
        std::memcpy(moved, p, std::min(bytes, bytes_in_bootstrap_buffer(p)));
    }
    return moved;
}
void first_free(void* p) noexcept {
    if (p != nullptr && !is_in_bootstrap_buffer(p) && is_found()) next_free(p);
}
int first_posix_memalign(void** to, std::size_t alignment, std::size_t bytes) noexcept {
    if (is_found()) return next_posix_memalign(to, alignment, bytes);
    void* const block = take_from_bootstrap_buffer(bytes, alignment);
    if (block == nullptr) return ENOMEM;
    *to = block;
    return 0;
}
std::size_t first_usable_size(void* p) noexcept {
    if (is_in_bootstrap_buffer(p)) return bytes_in_bootstrap_buffer(p);
    return is_found() ? next_usable_size(p) : 0;
}

}  // namespace

constinit NextFunction<void*, std::size_t> next_malloc(first_malloc);
constinit NextFunction<void*, std::size_t, std::size_t> next_calloc(first_calloc);
constinit NextFunction<void*, void*, std::size_t> next_realloc(first_realloc);
constinit NextFunction<void, void*> next_free(first_free);
constinit NextFunction<int, void**, std::size_t, std::size_t> next_posix_memalign(
    first_posix_memalign);
constinit NextFunction<std::size_t, void*> next_usable_size(first_usable_size);

}  // namespace tensorpool::interpose
