#include <algorithm>

#include "common/cells.hpp"
#include "formats/profile/formats.hpp"
#include "formats/profile/named_profile.hpp"
#include "top/top_headline.hpp"
#include "top/top_tables.hpp"

namespace tensorpool::command {
namespace {

using profile::Value;

std::int64_t change_of(const WatchedSites& sites, const ProfileSite& site) {
    const auto before = sites.before.find(site.id);
    const std::uint64_t bytes = before == sites.before.end() ? 0 : before->second;
    return static_cast<std::int64_t>(site.live_bytes - bytes);
}

}  // namespace

Table sites_table(const TopData& data, Sizes sizes) {
    Table table;
    table.columns = {text_column("ALLOCATED AT", 40),
                     size_column("LIVE"),
                     {"CHANGE", Side::right, 9},
                     part_column("PART"),
                     count_column("BLOCKS")};
    if (!data.sites) return table;
    const profile::NamedProfile& now = data.sites->now;
    const std::uint64_t total = now.total(Value::live);
    for (const ProfileSite& site : now.profile.sites) {
        table.rows.push_back({line_cell(now, site), size_cell(site.live_bytes, sizes),
                              growth_cell(change_of(*data.sites, site), sizes),
                              part_cell(site.live_bytes, total),
                              count_cell(blocks_of(site, Value::live))});
        table.keys.push_back(std::to_string(site.id));
    }
    return table;
}

std::vector<std::string> stack_lines(const TopData& data, const std::string& key) {
    if (!data.sites) return {};
    const profile::NamedProfile& now = data.sites->now;
    const auto site = std::ranges::find_if(
        now.profile.sites, [&](const ProfileSite& one) { return std::to_string(one.id) == key; });
    return site == now.profile.sites.end() ? std::vector<std::string>()
                                           : profile::short_stack_of(now, *site);
}

std::vector<std::string> site_notes(const TopData& data) {
    if (!data.sites) return {"The names of the call stacks are being read."};
    return profile::notes_of(data.sites->now.profile);
}

}  // namespace tensorpool::command
