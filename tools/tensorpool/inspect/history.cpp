#include "inspect/history.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "inspect/block_bytes.hpp"
#include "trace/recording.hpp"

namespace tensorpool::command::inspect {
namespace {

/// The open scopes of each thread, updated call by call.
class OpenScopes {
public:
    static constexpr std::uint32_t none = UINT32_MAX;

    explicit OpenScopes(const trace::Recording& recording) : open_(recording.threads.size()) {}

    /// Requires: calls are taken in order.
    void take(const trace::Call& call);
    /// Returns the source of the innermost open scope, or `none` if no scope is open.
    std::uint32_t innermost(std::uint32_t thread) const noexcept {
        return open_[thread].empty() ? none : open_[thread].back();
    }

private:
    void close(std::vector<std::uint32_t>& open, std::uint32_t source);

    std::vector<std::vector<std::uint32_t>> open_;  // for each thread, the innermost last
};

// A scope may end before one that began inside it. The search for it is limited, so that a hostile
// file cannot make it take forever.
constexpr std::ptrdiff_t max_depth_searched = 256;

void OpenScopes::take(const trace::Call& call) {
    auto& open = open_[call.thread];
    if (call.action == TraceAction::scope_begin) open.push_back(call.source);
    if (call.action == TraceAction::scope_end) close(open, call.source);
}

void OpenScopes::close(std::vector<std::uint32_t>& open, std::uint32_t source) {
    const auto end = open.rend() - open.rbegin() > max_depth_searched
                         ? open.rbegin() + max_depth_searched
                         : open.rend();
    const auto found = std::find(open.rbegin(), end, source);
    if (found != end) open.erase(std::next(found).base());
}

std::vector<std::uint32_t> sorted_by_end(const std::vector<Lifetime>& lifetimes) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < lifetimes.size(); ++i) {
        if (lifetimes[i].end != Lifetime::none) order.push_back(i);
    }
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return lifetimes[i].end; });
    return order;
}

}  // namespace

History::History(const Recording& recording)
    : recording_(recording),
      lifetimes_(trace::lifetimes_of(recording)),
      facts_(lifetimes_.size()),
      by_end_(sorted_by_end(lifetimes_)),
      begun_by_(recording.calls.size(), Lifetime::none) {
    for (std::uint32_t i = 0; i < lifetimes_.size(); ++i) {
        if (lifetimes_[i].begin != Lifetime::none) begun_by_[lifetimes_[i].begin] = i;
    }
    find_scopes();
    pass_on_origins();
    measure_blocks();
    begun_by_ = {};
}

std::uint64_t History::time_of(std::uint32_t call) const noexcept {
    const auto& calls = recording_.calls;
    if (calls.empty()) return 0;
    return calls[call == Lifetime::none ? 0 : call].time_ns;
}

std::uint64_t History::last_ns() const noexcept {
    return recording_.calls.empty() ? 0 : recording_.calls.back().time_ns;
}

void History::find_scopes() {
    OpenScopes open(recording_);
    for (std::uint32_t call = 0; call < recording_.calls.size(); ++call) {
        open.take(recording_.calls[call]);
        const std::uint32_t lifetime = begun_by_[call];
        if (lifetime == Lifetime::none) continue;
        facts_[lifetime].scope = open.innermost(recording_.calls[call].thread);
        facts_[lifetime].stack = recording_.calls[call].stack;
        facts_[lifetime].born = call;
    }
}

// A block that was resized in place still belongs to its first caller.
void History::pass_on_origins() {
    for (const std::uint32_t ended : by_end_) {
        const std::uint32_t next = begun_by_[lifetimes_[ended].end];
        if (next == Lifetime::none || !lifetimes_[next].continues) continue;
        if (lifetimes_[next].address != lifetimes_[ended].address) continue;
        facts_[next].scope = facts_[ended].scope;
        facts_[next].stack = facts_[ended].stack;
        facts_[next].born = facts_[ended].born;
    }
}

// Goes backwards, because only the call that ends a block has its size.
void History::measure_blocks() {
    for (std::size_t i = lifetimes_.size(); i-- > 0;)
        facts_[i].block_bytes = block_bytes_of(lifetimes_[i]);
}

std::uint64_t History::block_bytes_of(const Lifetime& lifetime) const {
    using enum TraceAction;
    if (lifetime.end != Lifetime::none) {
        const trace::Call& end = recording_.calls[lifetime.end];
        const std::uint32_t next = begun_by_[lifetime.end];
        const bool goes_on = next != Lifetime::none && lifetimes_[next].continues &&
                             lifetimes_[next].address == lifetime.address;
        if (goes_on) return std::max(lifetime.bytes, facts_[next].block_bytes);
        const bool has_size = end.action == deallocate && end.address == lifetime.address;
        if (has_size && end.bytes >= lifetime.bytes) return end.bytes;
    }
    const bool of_pool = recording_.sources[lifetime.source].kind == TraceSource::pool;
    if (!of_pool || lifetime.begin == Lifetime::none) return lifetime.bytes;
    return pool_block_bytes(lifetime.bytes, recording_.calls[lifetime.begin].alignment_log2);
}

}  // namespace tensorpool::command::inspect
