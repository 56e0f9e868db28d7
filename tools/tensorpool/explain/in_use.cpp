// Divides the blocks in use by call site and by scope.
//
// The heap profile estimates what each site holds, of all pools together. Its sum differs from the
// bytes in use, which are known. If it is more, all sites are scaled down. If it is less, the rest
// is that of other sites, because some pools and blocks are not sampled.

#include <algorithm>

#include "explain/explanation.hpp"
#include "explain/free_memory.hpp"
#include "formats/profile/formats.hpp"

namespace tensorpool::command::explain {
namespace {

constexpr std::size_t max_named = 10;
constexpr std::uint64_t parts_of_resident = 100;  // a smaller part than one is not named

/// Sorts by size and removes all but the largest.
void keep_largest(std::vector<Allocator>& all, std::uint64_t resident) {
    std::ranges::stable_sort(all, std::ranges::greater(), &Allocator::bytes);
    const auto is_small = [&](const Allocator& one) {
        return one.bytes == 0 || one.bytes < resident / parts_of_resident;
    };
    all.erase(std::ranges::find_if(all, is_small), all.end());
    all.resize(std::min(all.size(), max_named));
}

}  // namespace

void add_sites(Explanation& to, const profile::NamedProfile& named) {
    InUse& in_use = to.in_use;
    in_use.interval = std::max(named.profile.interval, named.profile.mean_distance);
    const std::uint64_t estimated = named.total(profile::Value::live);
    if (estimated == 0) {
        const std::vector<std::string> notes = profile::notes_of(named.profile);
        in_use.note = notes.empty() ? "no block in use was sampled" : notes.front();
        return;
    }
    const double resident =
        ratio(in_use.bytes, std::max({estimated, in_use.requested_bytes, in_use.bytes}));
    const profile::NamedProfile lines = sum_by_line(named);
    for (const ProfileSite& line : lines.profile.sites) {
        in_use.sites.push_back({line_of(lines, line), times(line.live_bytes, resident)});
    }
    keep_largest(in_use.sites, to.resident_bytes);
    std::uint64_t left = in_use.bytes;
    for (Allocator& site : in_use.sites) {
        site.bytes = std::min(site.bytes, left);
        left -= site.bytes;
    }
    if (left != 0) in_use.sites.push_back({"other call sites", left});
}

void add_scopes(Explanation& to, const ProcessSnapshot& snapshot) {
    for (const ScopeStatistics& scope : snapshot.scopes) {
        const std::uint64_t growth = above(scope.allocated_bytes, scope.deallocated_bytes);
        to.in_use.scopes.push_back({scope.name, std::min(growth, to.in_use.bytes)});
    }
    keep_largest(to.in_use.scopes, to.resident_bytes);
}

}  // namespace tensorpool::command::explain
