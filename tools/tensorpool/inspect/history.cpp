#include "inspect/history.hpp"

#include <algorithm>

#include "inspect/block_bytes.hpp"
#include "inspect/open_scopes.hpp"

namespace tensorpool::command::inspect {
namespace {

std::vector<std::uint32_t> sorted_by_end(const std::vector<Life>& lives) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < lives.size(); ++i) {
        if (lives[i].end != Life::none) order.push_back(i);
    }
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return lives[i].end; });
    return order;
}

}  // namespace

History::History(const Recording& recording)
    : recording_(recording),
      lives_(trace::lives_of(recording)),
      facts_(lives_.size()),
      by_end_(sorted_by_end(lives_)),
      begun_by_(recording.calls.size(), Life::none) {
    for (std::uint32_t i = 0; i < lives_.size(); ++i) {
        if (lives_[i].begin != Life::none) begun_by_[lives_[i].begin] = i;
    }
    find_scopes();
    pass_on_origins();
    measure_blocks();
    begun_by_ = {};
}

std::uint64_t History::time_of(std::uint32_t call) const noexcept {
    const auto& calls = recording_.calls;
    if (calls.empty()) return 0;
    return calls[call == Life::none ? 0 : call].time_ns;
}

std::uint64_t History::last_ns() const noexcept {
    return recording_.calls.empty() ? 0 : recording_.calls.back().time_ns;
}

void History::find_scopes() {
    OpenScopes open(recording_);
    for (std::uint32_t call = 0; call < recording_.calls.size(); ++call) {
        open.take(recording_.calls[call]);
        const std::uint32_t life = begun_by_[call];
        if (life == Life::none) continue;
        facts_[life].scope = open.innermost(recording_.calls[call].thread);
        facts_[life].stack = recording_.calls[call].stack;
        facts_[life].born = call;
    }
}

// A block that was resized where it stands is still its first caller's.
void History::pass_on_origins() {
    for (const std::uint32_t ended : by_end_) {
        const std::uint32_t next = begun_by_[lives_[ended].end];
        if (next == Life::none || !lives_[next].continues) continue;
        if (lives_[next].address != lives_[ended].address) continue;
        facts_[next].scope = facts_[ended].scope;
        facts_[next].stack = facts_[ended].stack;
        facts_[next].born = facts_[ended].born;
    }
}

// From the end, for only the call that ends a block tells its size.
void History::measure_blocks() {
    for (std::size_t i = lives_.size(); i-- > 0;) facts_[i].block_bytes = block_bytes_of(lives_[i]);
}

std::uint64_t History::block_bytes_of(const Life& life) const {
    using enum TraceAction;
    if (life.end != Life::none) {
        const trace::Call& end = recording_.calls[life.end];
        const std::uint32_t next = begun_by_[life.end];
        const bool goes_on =
            next != Life::none && lives_[next].continues && lives_[next].address == life.address;
        if (goes_on) return std::max(life.bytes, facts_[next].block_bytes);
        const bool tells = end.action == deallocate && end.address == life.address;
        if (tells && end.bytes >= life.bytes) return end.bytes;
    }
    const bool of_pool = recording_.sources[life.source].kind == TraceSource::pool;
    if (!of_pool || life.begin == Life::none) return life.bytes;
    return pool_block_bytes(life.bytes, recording_.calls[life.begin].alignment_log2);
}

}  // namespace tensorpool::command::inspect
