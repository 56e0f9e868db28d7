#include "stress/devices/live_blocks.hpp"

#include <iterator>
#include <string>
#include <utility>

#include "stress/devices/violation.hpp"

namespace tensorpool::stress::devices {
namespace {

constexpr std::uint64_t scalar_block = 512;  // bytes of a block shared by scalars

void expect(bool holds, const DeviceStatistics& now, const char* what, std::uint64_t value,
            std::uint64_t expected) {
    if (holds) return;
    throw Violation(std::string("statistics of ") + now.name + " on " + now.device + ": " + what +
                    " is " + std::to_string(value) + ", expected " + std::to_string(expected));
}

std::uintptr_t begin_of(const Block& block) noexcept {
    return reinterpret_cast<std::uintptr_t>(block.address);
}

std::string text_of(const Block& block) {
    return "block " + std::to_string(block.number) + " of " + std::to_string(block.requested) +
           " B (" + std::to_string(block.usable) + " B usable)";
}

}  // namespace

Block& LiveBlocks::add(std::unique_ptr<Block> block) {
    const std::uintptr_t begin = begin_of(*block);
    if (block->usable < block->requested) throw Violation(text_of(*block) + " is too small");
    if (begin % (block->scalar ? 8 : 256) != 0)
        throw Violation(text_of(*block) + " is not aligned");
    const auto next = ends_.lower_bound(begin);
    const bool into_next = next != ends_.end() && next->first < begin + block->usable;
    const bool into_last = next != ends_.begin() && std::prev(next)->second > begin;
    if (into_next || into_last) throw Violation(text_of(*block) + " overlaps another");
    ends_.emplace_hint(next, begin, begin + block->usable);
    requested_ += block->requested;
    block->scalar ? ++scalars_ : usable_ += block->usable;
    blocks_.push_back(std::move(block));
    return *blocks_.back();
}

void LiveBlocks::remove(const Block& block) {
    ends_.erase(begin_of(block));
    requested_ -= block.requested;
    block.scalar ? --scalars_ : usable_ -= block.usable;
    const auto is_it = [&](const auto& each) { return each.get() == &block; };
    const auto found = std::find_if(blocks_.begin(), blocks_.end(), is_it);
    std::swap(*found, blocks_.back());
    blocks_.pop_back();
}

void LiveBlocks::agree_with(const DeviceStatistics& now) const {
    const auto same = [&](const char* what, std::uint64_t value, std::uint64_t expected) {
        expect(value == expected, now, what, value, expected);
    };
    const auto at_most = [&](const char* what, std::uint64_t value, std::uint64_t most) {
        expect(value <= most, now, what, value, most);
    };
    same("blocks", now.allocations - now.deallocations, blocks_.size());
    same("requested_in_use_bytes", now.requested_in_use_bytes, requested_);
    at_most("bytes of blocks", usable_, now.in_use_bytes);
    at_most("in_use_bytes", now.in_use_bytes, usable_ + scalars_ * scalar_block);
    at_most("in_use_bytes against its peak", now.in_use_bytes, now.peak_in_use_bytes);
    same("capacity_bytes", now.capacity_bytes,
         now.in_use_bytes + now.deferred_bytes + now.free_bytes);
    same("capacity_bytes by growth", now.capacity_bytes, now.grown_bytes - now.given_back_bytes);
    at_most("split and parked bytes", now.split_bytes + now.parked_bytes, now.free_bytes);
    if (now.limit_bytes != 0) at_most("capacity_bytes", now.capacity_bytes, now.limit_bytes);
}

}  // namespace tensorpool::stress::devices
