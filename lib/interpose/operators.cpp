// The operators that allocate and free themselves; all others call these (forwarders.cpp).

#include "interpose/blocks_of_pool.hpp"

namespace tensorpool::interpose {
namespace {

constexpr AllocatedBy by_new = AllocatedBy::new_object;

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

void* try_aligned(std::size_t bytes, std::align_val_t alignment) noexcept {
    void* block = nullptr;
    const std::size_t at_least = std::max(static_cast<std::size_t>(alignment), sizeof(void*));
    return allocate_aligned(&block, at_least, bytes, by_new) == 0 ? block : nullptr;
}

}  // namespace
}  // namespace tensorpool::interpose

namespace interpose = tensorpool::interpose;

TENSORPOOL_API void* operator new(std::size_t bytes) {
    const std::size_t wanted = interpose::at_least_1(bytes);
    void* const block = interpose::allocate(wanted, interpose::by_new);
    if (block != nullptr) [[likely]]
        return block;
    return interpose::call_handler(
        [wanted] { return interpose::allocate(wanted, interpose::by_new); });
}

TENSORPOOL_API void* operator new(std::size_t bytes, std::align_val_t alignment) {
    const std::size_t wanted = interpose::at_least_1(bytes);
    void* const block = interpose::try_aligned(wanted, alignment);
    if (block != nullptr) [[likely]]
        return block;
    return interpose::call_handler([=] { return interpose::try_aligned(wanted, alignment); });
}

TENSORPOOL_API void operator delete(void* p) noexcept {
    interpose::deallocate(p, {.alignment = 0, .by = interpose::by_new});
}

TENSORPOOL_API void operator delete(void* p, std::align_val_t alignment) noexcept {
    interpose::deallocate(
        p, {.alignment = static_cast<std::size_t>(alignment), .by = interpose::by_new});
}

// Names that no program can replace.
extern "C" {
[[gnu::alias("_Znwm"), gnu::visibility("hidden")]] void* tensorpool_own_new(std::size_t);
[[gnu::alias("_ZnwmSt11align_val_t"),
  gnu::visibility("hidden")]] void* tensorpool_own_aligned_new(std::size_t, std::align_val_t);
[[gnu::alias("_ZdlPv"), gnu::visibility("hidden")]] void tensorpool_own_delete(void*) noexcept;
[[gnu::alias("_ZdlPvSt11align_val_t"), gnu::visibility("hidden")]] void
tensorpool_own_aligned_delete(void*, std::align_val_t) noexcept;
}

namespace tensorpool::interpose {

bool has_own_delete() noexcept {
    void (*const used)(void*) noexcept = ::operator delete;
    return used == tensorpool_own_delete;
}
bool has_own_aligned_delete() noexcept {
    void (*const used)(void*, std::align_val_t) noexcept = ::operator delete;
    return used == tensorpool_own_aligned_delete;
}

bool has_own_operators() noexcept {
    void* (*const used)(std::size_t) = ::operator new;
    void* (*const used_aligned)(std::size_t, std::align_val_t) = ::operator new;
    return used == tensorpool_own_new && used_aligned == tensorpool_own_aligned_new &&
           has_own_delete() && has_own_aligned_delete();
}

}  // namespace tensorpool::interpose
