#include "inspect/groups.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

namespace tensorpool::command::inspect {
namespace {

const char* kind_name(TraceSource kind) noexcept {
    switch (kind) {
        case TraceSource::pool:
            return "pool";
        case TraceSource::arena:
            return "arena";
        case TraceSource::scratch:
            return "scratch";
        case TraceSource::scope:
            return "scope";
        case TraceSource::device:
            return "device";
        case TraceSource::planned:
            return "planned";
    }
    return "?";
}

/// The estimated totals of one stack.
struct StackSum {
    double bytes = 0;
    double blocks = 0;
    std::uint64_t samples = 0;
};
using StackSums = std::unordered_map<std::uint32_t, StackSum>;

// As in tcmalloc, a block of n bytes is sampled with probability 1 - exp(-n / interval).
double blocks_for(std::uint64_t bytes, std::uint64_t interval) {
    if (interval == 0 || bytes == 0) return 1;
    return -1 / std::expm1(-static_cast<double>(bytes) / static_cast<double>(interval));
}

StackSums add_up(const History& history, const ChosenLives& chosen) {
    StackSums sums;
    for (std::size_t i = 0; i < history.lifetimes().size(); ++i) {
        const Lifetime& lifetime = history.lifetimes()[i];
        const std::uint32_t stack = history.facts(i).stack;
        if (stack == 0 || !chosen(lifetime)) continue;
        const double blocks = blocks_for(
            lifetime.bytes, history.recording().processes[lifetime.process].stack_interval);
        StackSum& sum = sums[stack];
        sum.blocks += blocks;
        sum.bytes += blocks * static_cast<double>(lifetime.bytes);
        ++sum.samples;
    }
    return sums;
}

std::string site_name(const std::vector<trace::RecordedFrame>& stack, FrameNames& names) {
    std::vector<const FrameName*> frames;
    for (const trace::RecordedFrame frame : stack) frames.push_back(&names.name(frame));
    const FrameName* const line = line_of_program(frames);
    return line == nullptr ? "?" : to_short_text(*line);
}

std::vector<std::string> texts_of(const std::vector<trace::RecordedFrame>& stack,
                                  FrameNames& names) {
    std::vector<std::string> texts;
    for (const trace::RecordedFrame frame : stack) texts.push_back(to_text(names.name(frame)));
    return texts;
}

struct SiteSum {
    StackSum all;
    std::uint32_t largest_stack = 0;
    double largest_bytes = 0;
};

// Sorts by the number of the stack, so that the result does not depend on the hash table's order.
std::vector<std::pair<std::uint32_t, StackSum>> in_order(const StackSums& sums) {
    std::vector<std::pair<std::uint32_t, StackSum>> ordered(sums.begin(), sums.end());
    std::ranges::sort(ordered, {}, &std::pair<std::uint32_t, StackSum>::first);
    return ordered;
}

Site to_site(const std::string& name, const SiteSum& sum, const Recording& recording,
             FrameNames& names) {
    return {name, sum.all.bytes, sum.all.blocks, sum.all.samples,
            texts_of(recording.stacks[sum.largest_stack], names)};
}

}  // namespace

Groups::Groups(const History& history, GroupBy by) : history_(history), by_(by) {
    std::map<std::string, std::uint32_t> known;
    const auto number_of = [&](std::string name) {
        const auto [at, is_new] =
            known.try_emplace(std::move(name), static_cast<std::uint32_t>(names_.size()));
        if (is_new) names_.push_back(at->first);
        return at->second;
    };
    for (const trace::RecordedSource& source : history.recording().sources) {
        std::string name = source.name;
        if (by == GroupBy::source) name += std::string(" (") + kind_name(source.kind) + ')';
        group_of_source_.push_back(number_of(std::move(name)));
    }
    // The brackets distinguish these from the names of scopes.
    before_ = number_of("[before the recording]");
    outside_ = number_of("[outside of scopes]");
}

std::uint32_t Groups::of(std::size_t lifetime) const noexcept {
    if (by_ == GroupBy::source) return group_of_source_[history_.lifetimes()[lifetime].source];
    const BlockFacts& facts = history_.facts(lifetime);
    if (facts.born == BlockFacts::none) return before_;
    return facts.scope == BlockFacts::none ? outside_ : group_of_source_[facts.scope];
}

std::vector<Share> shares_of(const History& history, const Groups& groups,
                             const ChosenLives& chosen) {
    std::vector<Share> shares(groups.count());
    for (std::size_t i = 0; i < history.lifetimes().size(); ++i) {
        const Lifetime& lifetime = history.lifetimes()[i];
        if (!chosen(lifetime)) continue;
        Share& share = shares[groups.of(i)];
        ++share.blocks;
        share.bytes += lifetime.bytes;
        share.block_bytes += history.facts(i).block_bytes;
    }
    for (std::size_t group = 0; group < shares.size(); ++group) {
        shares[group].name = groups.name(group);
    }
    std::erase_if(shares, [](const Share& share) { return share.blocks == 0; });
    std::ranges::stable_sort(shares, std::ranges::greater{}, &Share::bytes);
    return shares;
}

bool is_left(const History& history, const Lifetime& lifetime) noexcept {
    return lifetime.end == Lifetime::none && history.recording().processes[lifetime.process].ended;
}

Sites sites_of(const History& history, FrameNames& names, std::size_t max_sites,
               const ChosenLives& chosen) {
    const Recording& recording = history.recording();
    std::unordered_map<std::string, SiteSum> by_name;
    Sites sites;
    for (const auto& [stack, sum] : in_order(add_up(history, chosen))) {
        SiteSum& site = by_name[site_name(recording.stacks[stack], names)];
        site.all.bytes += sum.bytes;
        site.all.blocks += sum.blocks;
        site.all.samples += sum.samples;
        if (sum.bytes > site.largest_bytes) {
            site.largest_bytes = sum.bytes;
            site.largest_stack = stack;
        }
        sites.samples += sum.samples;
        sites.bytes += sum.bytes;
    }
    std::vector<std::pair<std::string, SiteSum>> ordered(by_name.begin(), by_name.end());
    std::ranges::sort(ordered, [](const auto& one, const auto& other) {
        return one.second.all.bytes != other.second.all.bytes
                   ? one.second.all.bytes > other.second.all.bytes
                   : one.first < other.first;
    });
    ordered.resize(std::min(ordered.size(), max_sites));
    for (const auto& [name, sum] : ordered) {
        sites.largest.push_back(to_site(name, sum, recording, names));
    }
    return sites;
}

}  // namespace tensorpool::command::inspect
