// The operators that allocate and free themselves; all others call these (forwarders.cpp).

#include <algorithm>
#include <new>

#include <tensorpool/export.hpp>

#include "interpose/requests.hpp"

namespace tensorpool::interpose {
namespace {

/// Calls the program's new-handler until there is a block, or throws.
template <class Try>
[[gnu::noinline]] void* call_handler(Try try_again) {
    for (;;) {
        const std::new_handler handler = std::get_new_handler();
        if (handler == nullptr) throw std::bad_alloc();
        handler();
        if (void* const block = try_again()) return block;
    }
}

// A request for 0 bytes gets a block of its own too.
std::size_t at_least_1(std::size_t bytes) noexcept {
    return bytes == 0 ? 1 : bytes;
}

void* try_aligned(std::size_t bytes, std::align_val_t alignment) noexcept {
    void* block = nullptr;
    const std::size_t at_least = std::max(static_cast<std::size_t>(alignment), sizeof(void*));
    return allocate_aligned(&block, at_least, bytes) == 0 ? block : nullptr;
}

}  // namespace
}  // namespace tensorpool::interpose

namespace interpose = tensorpool::interpose;

TENSORPOOL_API void* operator new(std::size_t bytes) {
    const std::size_t wanted = interpose::at_least_1(bytes);
    void* const block = interpose::allocate(wanted);
    if (block != nullptr) [[likely]]
        return block;
    return interpose::call_handler([wanted] { return interpose::allocate(wanted); });
}

TENSORPOOL_API void* operator new(std::size_t bytes, std::align_val_t alignment) {
    const std::size_t wanted = interpose::at_least_1(bytes);
    void* const block = interpose::try_aligned(wanted, alignment);
    if (block != nullptr) [[likely]]
        return block;
    return interpose::call_handler([=] { return interpose::try_aligned(wanted, alignment); });
}

TENSORPOOL_API void operator delete(void* p) noexcept {
    interpose::deallocate(p);
}

TENSORPOOL_API void operator delete(void* p, std::align_val_t) noexcept {
    interpose::deallocate(p);
}
