#include "watch/profile/known_stacks.hpp"

#include "platform/stacks/stack_memory.hpp"

namespace tensorpool::watch {
namespace {

std::uintptr_t address_of(const void* base, std::uint32_t offset) noexcept {
    return reinterpret_cast<std::uintptr_t>(base) + offset;
}

}  // namespace

// From the innermost frame outwards, up to the first difference. A stack may begin before that: a
// coroutine's stack lies where a larger one was.
bool KnownStacks::Known::is_on_stack() const noexcept {
    platform::StackMemory memory(reinterpret_cast<std::uintptr_t>(base));
    for (std::uint32_t i = 0; i != count; ++i) {
        std::uintptr_t word = 0;
        if (!memory.read(address_of(base, offsets[i]), word) || word != returns[i]) return false;
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
    platform::StackMemory memory(begin);
    for (std::size_t i = 0; i != stack.native_count; ++i) {
        const auto slot = reinterpret_cast<std::uintptr_t>(stack.slots[i]);
        if (slot == 0) return;
        if (slot < begin) continue;
        const std::uintptr_t offset = slot - begin;
        if (offset > UINT32_MAX || slot % sizeof(std::uintptr_t) != 0) return;
        known.offsets[known.count] = static_cast<std::uint32_t>(offset);
        known.returns[known.count] = stack.addresses[i] + 1;
        std::uintptr_t word = 0;
        if (!memory.read(slot, word) || word != known.returns[known.count]) return;
        ++known.count;
    }
    if (known.count == 0) return;
    known.base = base;
    known.python = python;
    known.site = &site;
    next_[set] = static_cast<std::uint8_t>((next_[set] + 1) % ways);
}

}  // namespace tensorpool::watch
