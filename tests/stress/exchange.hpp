#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

namespace tensorpool::stress {

/// A block in use, with what is needed to verify and free it.
struct Holding {
    void* p = nullptr;
    std::size_t requested = 0;
    std::size_t usable = 0;
    std::size_t alignment = 0;  // 0 for the default
    std::uint64_t mark = 0;
    unsigned pool = 0;
};
using HoldingPointer = std::unique_ptr<Holding>;

/// Cells where threads leave blocks for other threads. Lock-free.
class Exchange {
public:
    static constexpr std::size_t cells = 32;

    Exchange() = default;
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    /// Leaves a block and takes the one that another thread left, which may be nullptr.
    HoldingPointer swap(std::size_t cell, HoldingPointer holding) {
        // Acquire and release: the writes of the former holder are visible to the new one.
        return HoldingPointer(
            cells_[cell % cells].exchange(holding.release(), std::memory_order_acq_rel));
    }

private:
    std::array<std::atomic<Holding*>, cells> cells_ = {};
};

}  // namespace tensorpool::stress
