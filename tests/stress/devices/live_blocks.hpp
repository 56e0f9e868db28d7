#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <tensorpool/device_statistics.hpp>

#include "stress/devices/block.hpp"
#include "stress/devices/random.hpp"

namespace tensorpool::stress::devices {

/// The blocks in use of one allocator. Checks that they do not overlap and that the allocator's
/// statistics match them. Throws Violation otherwise.
class LiveBlocks {
public:
    Block& add(std::unique_ptr<Block> block);
    void remove(const Block& block);

    bool empty() const noexcept { return blocks_.empty(); }
    std::size_t count() const noexcept { return blocks_.size(); }
    /// REQUIRES: there is at least one block.
    Block& any(Random& random) { return *blocks_[random.below(blocks_.size())]; }
    const std::vector<std::unique_ptr<Block>>& all() const noexcept { return blocks_; }

    void agree_with(const DeviceStatistics& now) const;

private:
    std::vector<std::unique_ptr<Block>> blocks_;
    std::map<std::uintptr_t, std::uintptr_t> ends_;
    std::uint64_t usable_ = 0;     // without scalars
    std::uint64_t requested_ = 0;  // including scalars
    std::uint64_t scalars_ = 0;
};

}  // namespace tensorpool::stress::devices
