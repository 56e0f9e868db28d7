#include "watch/profile/profiled_blocks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/never_destroyed.hpp"
#include "platform/platform.hpp"
#include "platform/stacks/python_frames.hpp"
#include "platform/tools/memory_probes.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool::watch {

using statistics::Counter;
using statistics::ProfileWords;
using statistics::segment;

namespace {

constinit base::NeverDestroyed<ProfiledBlocks> the_profiled_blocks;

// While this library is loaded: later the search could wait for the loader's lock in the middle of
// an allocation. A program that loads an interpreter afterwards gets native frames only.
[[maybe_unused]] const bool has_python = platform::find_python();

std::uint64_t read(const Counter& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}
void write(Counter& counter, std::uint64_t value) noexcept {
    counter.store(value, std::memory_order_relaxed);
}

ProfileWords* words() noexcept {
    SegmentHeader* const header = segment().header();
    return header == nullptr ? nullptr : &header->profile;
}

// The share of use by which it exceeds the kept peak before another is kept.
constexpr std::uint64_t peak_error_divisor = 100;

std::size_t lifetime_of(std::uint64_t ns) noexcept {
    const auto bits = static_cast<std::size_t>(std::bit_width(ns / 1000));
    return std::min((bits + 1) / 2, SiteRecord::lifetime_count - 1);
}

// Exact, and never less than what is in use. Pools without a record in the segment set no limit.
std::uint64_t bytes_held_by_pools(SegmentHeader& header) noexcept {
    const statistics::Region& region = header.region<statistics::PoolRecord>();
    if (read(region.left_out) != 0) return UINT64_MAX;
    std::int64_t held = 0;
    const auto* const pools = records_in<statistics::PoolRecord>(header);
    for (std::uint64_t i = 1; i < read(region.used); ++i) {
        if (read(pools[i].id) == 0) continue;
        // Below 0 in the child of a fork, see PoolTotals::hold.
        held +=
            std::max<std::int64_t>(static_cast<std::int64_t>(read(pools[i].totals.held_bytes)), 0);
    }
    return static_cast<std::uint64_t>(held);
}

bool exceeds(std::uint64_t bytes, std::uint64_t peak) noexcept {
    return bytes > peak + peak / peak_error_divisor;
}

std::uint64_t live(const Counter& allocated, const Counter& freed) noexcept {
    return read(allocated) - read(freed);
}

}  // namespace

ProfiledBlocks& profiled_blocks() noexcept {
    return the_profiled_blocks.get();
}

void ProfiledBlock::on_free(std::size_t usable_bytes) noexcept {
    BlockMark* const earlier = covered;
    profiled_blocks().end(*this);
    if (earlier != nullptr) earlier->on_free(usable_bytes);
}

ProfiledBlock* ProfiledBlocks::begin(const void* address, std::size_t bytes, double mean,
                                     base::BlockMark* covered) noexcept {
    const double share = -std::expm1(-static_cast<double>(bytes) / mean);
    const std::lock_guard guard(mutex_);
    SiteRecord* const site = site_of_caller(__builtin_frame_address(0));
    ProfiledBlock* const block = site == nullptr ? nullptr : free_.take();
    if (block == nullptr) {
        if (ProfileWords* const profile = words()) detail::add(profile->lost_samples, 1);
        return nullptr;
    }
    block->site = site;
    block->address = address;
    block->bytes = static_cast<std::uint64_t>(static_cast<double>(bytes) / share);
    block->blocks = static_cast<std::uint64_t>(std::llround(SiteRecord::block_units / share));
    block->begin_ns = platform::monotonic_clock_ns();
    block->covered = covered;
    detail::add(site->samples, 1);
    detail::add(site->allocated_bytes, block->bytes);
    detail::add(site->allocated_blocks, block->blocks);
    detail::add(words()->live_bytes, block->bytes);
    detail::add(words()->distances, static_cast<std::uint64_t>(std::llround(mean)));
    platform::probe_allocation(address, bytes, block->bytes);
    return block;
}

// The buffers are members: the thread may have a small stack.
SiteRecord* ProfiledBlocks::site_of_caller(const void* frame) noexcept {
    const std::uint64_t python = platform::hash_python_stack(platform::StackBuffers::max_python);
    if (SiteRecord* const site = known_.find(frame, python)) return site;
    const std::size_t count =
        platform::capture_program_stack(frames_, SiteRecord::max_frames, buffers_);
    SiteRecord* const site = sites_.find_or_add({frames_, count});
    if (site != nullptr) known_.add(frame, python, buffers_, *site);
    return site;
}

void ProfiledBlocks::end(ProfiledBlock& block) noexcept {
    const std::lock_guard guard(mutex_);
    platform::probe_free(block.address);
    ProfileWords& profile = *words();
    if (exceeds(read(profile.live_bytes), read(profile.peak_bytes))) keep_peak();
    write(profile.live_bytes, read(profile.live_bytes) - block.bytes);
    const std::uint64_t now = platform::monotonic_clock_ns();
    const std::uint64_t lifetime = now - std::min(now, block.begin_ns);
    detail::add(block.site->lifetimes[lifetime_of(lifetime)], block.blocks);
    detail::add_release(block.site->freed_bytes, block.bytes);
    detail::add_release(block.site->freed_blocks, block.blocks);
    free_.give_back(block);
}

// Use is about to fall from its peak. As long as it rises, readers take what is in use now.
void ProfiledBlocks::keep_peak() noexcept {
    SegmentHeader& header = *segment().header();
    const std::uint64_t estimate = read(header.profile.live_bytes);
    const std::uint64_t bytes = std::min(estimate, bytes_held_by_pools(header));
    if (!exceeds(bytes, read(header.profile.peak_bytes))) return;
    const double part = static_cast<double>(bytes) / static_cast<double>(estimate);
    const auto reduced = [part](std::uint64_t value) {
        return static_cast<std::uint64_t>(static_cast<double>(value) * part);
    };
    write(header.profile.peak_bytes, bytes);
    write(header.profile.peak_unix_ns, platform::wall_clock_ns());
    auto* const sites = records_in<SiteRecord>(header);
    const std::uint64_t count = read(header.region<SiteRecord>().used);
    for (std::uint64_t i = 0; i != count; ++i) {
        write(sites[i].peak_bytes, reduced(live(sites[i].allocated_bytes, sites[i].freed_bytes)));
        write(sites[i].peak_blocks,
              reduced(live(sites[i].allocated_blocks, sites[i].freed_blocks)));
    }
}

void ProfiledBlocks::note_end_of_pool(std::uint64_t requested_bytes) noexcept {
    const std::lock_guard guard(mutex_);
    if (ProfileWords* const profile = words()) {
        detail::add(profile->requested_bytes_of_ended_pools, requested_bytes);
    }
}

void ProfiledBlocks::count_lost() noexcept {
    const std::lock_guard guard(mutex_);
    if (ProfileWords* const profile = words()) detail::add(profile->lost_samples, 1);
}

}  // namespace tensorpool::watch
