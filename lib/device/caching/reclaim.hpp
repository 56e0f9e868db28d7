#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/caching/allocator_state.hpp"
#include "device/caching/free_blocks.hpp"
#include "device/caching/streams/captures.hpp"

namespace tensorpool::device {

/// Gives memory that no block in use lies in back to the device, once no work uses it. What goes
/// first is what was not used for longest.
class Reclaim {
public:
    Reclaim(AllocatorState& state, FreeBlocks& free, Captures& captures) noexcept
        : state_(state), free_(free), captures_(captures) {}

    enum class Which : std::uint8_t { all, aged, whole_slabs };
    /// Gives up to about `bytes` of it back, or of `aged` all that is older than the mean. Returns
    /// how much the device took. Throws std::bad_alloc; then nothing has changed.
    std::size_t give_back(Which which, std::size_t bytes);
    /// Aged memory goes back where a growth would exceed the soft limit.
    void keep_soft_limit(std::size_t growth);
    /// Waits for all work of the device and gives back what is free by then; its bytes. Not while a
    /// stream is captured: that ends its capture.
    std::size_t synchronize() noexcept;
    /// What other threads are giving back counts as held until they have.
    void wait_for_returns();
    /// Lets a device that counts freed memory late count it now.
    void settle_memory() noexcept;

    /// Free granules of a stream whose work is done, then of others, taken out of the sets: about
    /// `bytes`. Throws std::bad_alloc; then nothing has changed.
    std::vector<Block*> take_idle_granules(StreamCache& first, std::size_t bytes);

private:
    void look_at_marks(StreamCache& cache) noexcept;
    void leave_mark(StreamCache& cache) noexcept;
    void collect_idle(StreamCache& cache, Which which, std::vector<Block*>& found) const;
    void take_out(std::vector<Block*>& blocks, std::size_t bytes) noexcept;
    std::size_t give_back(std::vector<Block*>& blocks) noexcept;
    std::size_t settle(const std::vector<Block*>& blocks) noexcept;
    void return_to_device(Block& block) noexcept;
    DeviceStatus unmap(Block& block) noexcept;

    AllocatorState& state_;
    FreeBlocks& free_;
    Captures& captures_;
};

}  // namespace tensorpool::device
