#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

namespace tensorpool::stress {

/// A block in use, whoever holds it.
struct Holding {
    void* p = nullptr;
    std::size_t asked = 0;
    std::size_t usable = 0;
    std::size_t alignment = 0;  // 0 for the default
    std::uint64_t mark = 0;
    unsigned pool = 0;
};
using HoldingPointer = std::unique_ptr<Holding>;

/// Places where threads leave blocks for others. Lock-free.
class Exchange {
public:
    static constexpr std::size_t places = 32;

    Exchange() = default;
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    /// Leaves one and takes what another left, which may be nothing.
    HoldingPointer swap(std::size_t place, HoldingPointer holding) {
        // Acquire and release: what the last holder wrote into the block comes first.
        return HoldingPointer(
            places_[place % places].exchange(holding.release(), std::memory_order_acq_rel));
    }

private:
    std::array<std::atomic<Holding*>, places> places_ = {};
};

}  // namespace tensorpool::stress
