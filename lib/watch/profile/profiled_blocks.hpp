#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/block_mark.hpp"
#include "statistics/segment/slab_list.hpp"
#include "watch/profile/known_stacks.hpp"
#include "watch/profile/site_table.hpp"

namespace tensorpool::watch {

/// The mark of a block in use that was sampled. The block counts as more blocks and bytes than it
/// has: those that were not sampled.
struct ProfiledBlock final : base::BlockMark {
    void on_free(std::size_t bytes) noexcept override;
    BlockMark* charge() noexcept override {
        return covered == nullptr ? nullptr : covered->charge();
    }

    SiteRecord* site = nullptr;
    const void* address = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;  // in units of 1 / SiteRecord::block_units
    std::uint64_t begin_ns = 0;
    BlockMark* covered = nullptr;  // the earlier mark of the block
    ProfiledBlock* next_free = nullptr;
};

/// The heap profile of the process: its sampled blocks, added up by call stack in the segment.
/// Memory comes from the system and never from malloc, which this library may serve. Thread-safe.
class ProfiledBlocks {
public:
    constexpr ProfiledBlocks() noexcept = default;
    ProfiledBlocks(const ProfiledBlocks&) = delete;
    ProfiledBlocks& operator=(const ProfiledBlocks&) = delete;

    /// Notes a block of `bytes` bytes, which was sampled at a mean distance of `mean` bytes, for
    /// the stack of the caller. The sample covers the block's mark `covered`. Returns nullptr, and
    /// counts the sample as lost, if there is no memory. REQUIRES: the caller holds no lock.
    [[gnu::noinline]] ProfiledBlock* begin(const void* address, std::size_t bytes, double mean,
                                           base::BlockMark* covered = nullptr) noexcept;
    /// Notes the end of a block's use.
    void end(ProfiledBlock& block) noexcept;
    /// Notes that a pool ended, whose sampled blocks have ended before, and what was requested from
    /// it.
    void note_end_of_pool(std::uint64_t requested_bytes) noexcept;
    /// Counts a sample that could not be taken.
    void count_lost() noexcept;

    /// Called around a fork.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    // REQUIRES, for all that follow: the lock is held.
    SiteRecord* site_of_caller(const void* frame) noexcept;
    void keep_peak() noexcept;

    std::mutex mutex_;
    SiteTable sites_;
    KnownStacks known_;
    platform::ProgramFrame frames_[SiteRecord::max_frames] = {};
    platform::StackBuffers buffers_ = {};
    statistics::SlabList<ProfiledBlock> free_;
};

ProfiledBlocks& profiled_blocks() noexcept;

}  // namespace tensorpool::watch
