#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>

namespace tensorpool::device {

/// Addresses for the allocations of a simulated device. Freed ranges rest before they are handed
/// out again, so that an access after the free is recognized as one.
class AddressArena {
public:
    /// Called with each range that is about to be handed out again.
    using Forget = std::function<void(std::uintptr_t address, std::size_t bytes)>;

    /// Throws std::bad_alloc if `bytes` of address space cannot be reserved.
    AddressArena(std::size_t bytes, Forget forget);
    ~AddressArena();
    AddressArena(const AddressArena&) = delete;
    AddressArena& operator=(const AddressArena&) = delete;

    bool contains(std::uintptr_t address) const noexcept { return address - begin_ < bytes_; }
    /// Returns committed memory, rounded up to whole pages. Ranges of 2 MiB or more are aligned to
    /// 2 MiB. Returns nullptr if no range is free or the system refuses the memory.
    void* take(std::size_t bytes);
    /// Takes a range back; `bytes` is the size given to `take`. Its pages return to the system.
    void give(void* address, std::size_t bytes);

private:
    using Ranges = std::map<std::uintptr_t, std::size_t>;

    std::uintptr_t find(std::size_t bytes);
    std::uintptr_t find_from(Ranges::iterator first, Ranges::iterator last, std::size_t bytes);
    void wake_oldest();

    std::uintptr_t begin_ = 0;
    std::size_t bytes_;
    Forget forget_;
    Ranges free_;  // adjacent ranges are merged
    std::deque<std::pair<std::uintptr_t, std::size_t>> resting_;
    std::uintptr_t next_ = 0;  // end of the range that was taken last
};

}  // namespace tensorpool::device
