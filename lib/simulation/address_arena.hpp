#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>

namespace tensorpool::device {

/// Addresses for a simulated device's allocations. Those that were freed rest for a while before
/// they are handed out again, so that late accesses are seen for what they are.
class AddressArena {
public:
    /// Told of each range that is about to be handed out again.
    using Forget = std::function<void(std::uintptr_t address, std::size_t bytes)>;

    /// Throws std::bad_alloc where there are not `bytes` of address space.
    AddressArena(std::size_t bytes, Forget forget);
    ~AddressArena();
    AddressArena(const AddressArena&) = delete;
    AddressArena& operator=(const AddressArena&) = delete;

    bool contains(std::uintptr_t address) const noexcept { return address - begin_ < bytes_; }
    /// Whole pages, committed: from 2 MiB on aligned to that. nullptr where there are none.
    void* take(std::size_t bytes);
    /// The same bytes again. Their pages go back to the system.
    void give(void* address, std::size_t bytes);

private:
    using Ranges = std::map<std::uintptr_t, std::size_t>;

    std::uintptr_t find(std::size_t bytes);
    std::uintptr_t find_from(Ranges::iterator first, Ranges::iterator last, std::size_t bytes);
    void wake_oldest();

    std::uintptr_t begin_ = 0;
    std::size_t bytes_;
    Forget forget_;
    Ranges free_;  // no two touch
    std::deque<std::pair<std::uintptr_t, std::size_t>> resting_;
    std::uintptr_t next_ = 0;  // where the last one that was taken ended
};

}  // namespace tensorpool::device
