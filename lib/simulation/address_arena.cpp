#include "simulation/address_arena.hpp"

#include <iterator>
#include <new>
#include <utility>

#include "base/alignment.hpp"
#include "platform/platform.hpp"

namespace tensorpool::device {
namespace {

constexpr std::size_t large_alignment = std::size_t{2} << 20;
// Enough to name the free in a hazard report, few enough to keep the search short.
constexpr std::size_t max_resting = 256;

std::size_t alignment_of(std::size_t bytes) noexcept {
    return bytes < large_alignment ? platform::page_bytes() : large_alignment;
}

}  // namespace

AddressArena::AddressArena(std::size_t bytes, Forget forget)
    : bytes_(base::align_up(bytes, large_alignment)), forget_(std::move(forget)) {
    void* const address = platform::reserve(bytes_, large_alignment);
    if (address == nullptr) throw std::bad_alloc();
    begin_ = reinterpret_cast<std::uintptr_t>(address);
    free_.emplace(begin_, bytes_);
}

AddressArena::~AddressArena() {
    platform::release(reinterpret_cast<void*>(begin_), bytes_);
}

void* AddressArena::take(std::size_t bytes) {
    bytes = base::align_up(bytes, platform::page_bytes());
    std::uintptr_t address = find(bytes);
    while (address == 0 && !resting_.empty()) {
        wake_oldest();
        address = find(bytes);
    }
    if (address == 0) return nullptr;
    void* const memory = reinterpret_cast<void*>(address);
    if (platform::commit(memory, bytes)) return memory;
    give(memory, bytes);
    return nullptr;
}

std::uintptr_t AddressArena::find(std::size_t bytes) {
    const auto middle = free_.lower_bound(next_);
    const std::uintptr_t later = find_from(middle, free_.end(), bytes);
    return later != 0 ? later : find_from(free_.begin(), free_.end(), bytes);
}

std::uintptr_t AddressArena::find_from(Ranges::iterator first, Ranges::iterator last,
                                       std::size_t bytes) {
    for (; first != last; ++first) {
        const auto [begin, length] = *first;
        const std::uintptr_t address = base::align_up(begin, alignment_of(bytes));
        if (address - begin > length || length - (address - begin) < bytes) continue;
        free_.erase(first);
        if (address != begin) free_.emplace(begin, address - begin);
        const std::size_t rest = length - (address - begin) - bytes;
        if (rest != 0) free_.emplace(address + bytes, rest);
        next_ = address + bytes;
        return address;
    }
    return 0;
}

void AddressArena::give(void* address, std::size_t bytes) {
    bytes = base::align_up(bytes, platform::page_bytes());
    // If decommit fails, the pages keep their content. Callers may expect any content anyway.
    (void)platform::decommit(address, bytes);
    resting_.emplace_back(reinterpret_cast<std::uintptr_t>(address), bytes);
    if (resting_.size() > max_resting) wake_oldest();
}

void AddressArena::wake_oldest() {
    auto [address, bytes] = resting_.front();
    resting_.pop_front();
    forget_(address, bytes);
    auto after = free_.lower_bound(address);
    if (after != free_.end() && address + bytes == after->first) {
        bytes += after->second;
        after = free_.erase(after);
    }
    if (after != free_.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == address) {
            before->second += bytes;
            return;
        }
    }
    free_.emplace_hint(after, address, bytes);
}

}  // namespace tensorpool::device
