#include "inspect/groups.hpp"

#include <algorithm>
#include <map>

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

}  // namespace tensorpool::command::inspect
