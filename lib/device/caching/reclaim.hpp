#pragma once

#include "device/caching/scalars.hpp"
#include "device/caching/streams/captures.hpp"

namespace tensorpool::device {

/// Releases memory without blocks in use to the device, once no work uses it. The memory that was
/// unused for longest is released first.
class Reclaim {
public:
    Reclaim(AllocatorState& state, FreeBlocks& free, Captures& captures) noexcept
        : state_(state), free_(free), captures_(captures) {}

    enum class Which : std::uint8_t { all, aged, whole_slabs, shareable };
    /// Releases about `bytes`, or with `aged` all that is older than the mean age. Returns how many
    /// bytes the device took back. Throws std::bad_alloc and then changes nothing.
    std::size_t give_back(Which which, std::size_t bytes);
    /// Releases shareable blocks that were freed, as soon as no work uses them. Cheap if there are
    /// none.
    void give_back_shareable() noexcept;
    /// Releases aged memory if a growth would exceed the soft limit.
    void keep_soft_limit(std::size_t growth);
    /// Waits for all work of the device. Returns false if the wait failed, or while a stream is
    /// being captured, because the wait would end the capture.
    bool wait_for_device() noexcept;
    /// Waits for all work of the device, releases what is free by then, and returns its bytes.
    std::size_t synchronize() noexcept;
    /// Leaves a mark in the stream of a caller that grows, if the stream cannot be asked later.
    void mark_caller(StreamCache& cache) noexcept;
    /// Waits until other threads have released their memory; until then it counts as held.
    void wait_for_returns();
    /// Lets a device that counts freed memory late count it now.
    void settle_memory() noexcept;

    /// Takes about `bytes` of free granules of this size with no pending work out of the sets:
    /// first those of `first`, then those of other streams. Throws std::bad_alloc and then changes
    /// nothing.
    std::vector<Block*> take_idle_granules(StreamCache& first, std::size_t granule,
                                           std::size_t bytes);
    /// Unmaps all granules of a taken block, whose handles stay in the table. Returns false, with
    /// the block marked kept, or lost if the device can neither unmap nor map all of it. Called
    /// without the lock.
    bool unmap(Block& block) noexcept;
    /// Unmaps and frees what is mapped of a run of granules. One that the device does not unmap
    /// stays mapped. Returns the bytes that the device took back. Needs no lock if the run is the
    /// caller's.
    std::size_t unmap_rest(Slab& slab, std::byte* begin, const std::byte* end) noexcept;
    /// Keeps a lost block until the device takes back the rest of it.
    void keep_lost(Block& block) noexcept;

private:
    void look_at_marks(StreamCache& cache) noexcept;
    void leave_mark(StreamCache& cache) noexcept;
    void collect_idle(StreamCache& cache, Which which, std::vector<Block*>& found) const;
    void take_out(std::vector<Block*>& blocks, std::size_t bytes) noexcept;
    std::size_t give_back(std::vector<Block*>& blocks) noexcept;
    std::size_t settle(const std::vector<Block*>& blocks) noexcept;
    void return_to_device(Block& block) noexcept;
    bool map_again(Block& block, const std::byte* end) noexcept;
    void destroy_granules(Block& block, const std::byte* end) noexcept;
    void give_lost_back() noexcept;

    AllocatorState& state_;
    FreeBlocks& free_;
    Captures& captures_;
    Block* lost_ = nullptr;  // list by `link`
};

}  // namespace tensorpool::device
