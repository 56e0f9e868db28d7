#include "statistics/profile/known_stacks.hpp"

#include <cstring>

namespace tensorpool::statistics {
namespace {

// The places may lie between variables of other functions now.
#if defined(__GNUC__)
#define TENSORPOOL_READS_STACK [[gnu::no_sanitize("address", "thread")]]
#else
#define TENSORPOOL_READS_STACK
#endif

TENSORPOOL_READS_STACK std::uintptr_t word_at(const void* base, std::uint32_t offset) noexcept {
    return *reinterpret_cast<const volatile std::uintptr_t*>(static_cast<const char*>(base) +
                                                             offset);
}

}  // namespace

// From the innermost frame outwards, up to the first difference: at the latest, that is the
// function with which the present stack begins, so nothing beyond the stack is read.
TENSORPOOL_READS_STACK bool KnownStacks::Known::is_on_stack() const noexcept {
    for (std::uint32_t i = 0; i != count; ++i) {
        if (word_at(base, offsets[i]) != returns[i]) return false;
    }
    return true;
}

SiteRecord* KnownStacks::find(const void* base, std::uint64_t python) const noexcept {
    for (const Known& known : known_[set_of(base)]) {
        if (known.base == base && known.python == python && known.is_on_stack()) return known.site;
    }
    return nullptr;
}

// A stack with a frame whose return address lies elsewhere, such as that of a signal handler, is
// not noted.
void KnownStacks::add(const void* base, std::uint64_t python, const platform::StackBuffers& stack,
                      SiteRecord& site) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(base);
    const std::size_t set = set_of(base);
    Known& known = known_[set][next_[set]];
    known.base = nullptr;
    known.count = 0;
    for (std::size_t i = 0; i != stack.native_count; ++i) {
        const auto slot = reinterpret_cast<std::uintptr_t>(stack.slots[i]);
        if (slot < begin) continue;
        const std::uintptr_t offset = slot - begin;
        if (offset > UINT32_MAX || slot % sizeof(std::uintptr_t) != 0) return;
        known.offsets[known.count] = static_cast<std::uint32_t>(offset);
        known.returns[known.count] = stack.addresses[i] + 1;
        if (word_at(base, known.offsets[known.count]) != known.returns[known.count]) return;
        ++known.count;
    }
    if (known.count == 0) return;
    known.base = base;
    known.python = python;
    known.site = &site;
    next_[set] = static_cast<std::uint8_t>((next_[set] + 1) % ways);
}

}  // namespace tensorpool::statistics
