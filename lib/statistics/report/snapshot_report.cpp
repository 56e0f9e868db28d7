#include <algorithm>
#include <string>
#include <vector>

#include <tensorpool/context_statistics.hpp>
#include <tensorpool/snapshot.hpp>

#include "base/text.hpp"
#include "statistics/metrics/arena_metrics.hpp"
#include "statistics/report/report_parts.hpp"

namespace tensorpool {
namespace {

using base::BytesText;
using statistics::add_line;
using statistics::array_of;
using statistics::members;
using statistics::percent;
using statistics::quoted;
using Kind = ArenaStatistics::Kind;
using Count = unsigned long long;

const char* word_of(Kind kind) noexcept {
    switch (kind) {
        case Kind::growing:
            return "growing";
        case Kind::buffer:
            return "buffer";
        case Kind::measuring:
            return "measuring";
        case Kind::scratch:
            return "scratch";
    }
    return "unknown";
}

const char* noun_of(Kind kind) noexcept {
    switch (kind) {
        case Kind::buffer:
            return "arena over a buffer";
        case Kind::measuring:
            return "measuring arena";
        case Kind::scratch:
            return "scratch";
        default:
            return "arena";
    }
}

/// Returns how many columns a terminal needs for the text: the number of bytes that begin a UTF-8
/// character.
std::size_t columns(const std::string& text) noexcept {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width) {
    const std::size_t has = columns(text);
    return has < width ? text + std::string(width - has, ' ') : text;
}

std::size_t widest_name(const std::vector<ArenaStatistics>& group) {
    std::size_t widest = 12;  // so that tables of short names have the same width
    for (const ArenaStatistics& one : group) widest = std::max(widest, columns(one.name));
    return widest;
}

void add_row(std::string& out, const ArenaStatistics& one, std::size_t width) {
    out += "  " + padded(one.name, width);
    add_line(out, " %10s %10s %10s %10s %11llu %8llu %10llu %8llu",
             BytesText(one.used_bytes).c_str(), BytesText(one.peak_used_bytes).c_str(),
             BytesText(one.capacity_bytes).c_str(), BytesText(one.reserved_bytes).c_str(),
             static_cast<Count>(one.allocations), static_cast<Count>(one.growths),
             static_cast<Count>(one.give_backs), static_cast<Count>(one.refusals));
}

void add_table(std::string& out, const char* title, const std::vector<ArenaStatistics>& group) {
    if (group.empty()) return;
    const std::size_t width = widest_name(group);
    add_line(out, "tensorpool: %s", title);
    out += "  " + padded("name", width);
    add_line(out, " %10s %10s %10s %10s %11s %8s %10s %8s", "used", "peak", "capacity", "reserved",
             "allocations", "growths", "give-backs", "refusals");
    for (const ArenaStatistics& one : group) add_row(out, one, width);
}

std::string limit_text(std::uint64_t bytes) {
    return bytes == 0 ? "none" : BytesText(bytes).c_str();
}

std::string share_text(const BudgetStatistics& budget) {
    const std::uint64_t limit = budget.hard_bytes != 0 ? budget.hard_bytes : budget.soft_bytes;
    if (limit == 0) return "";
    char text[32];
    std::snprintf(text, sizeof text, "%.0f %%", percent(budget.in_use_bytes, limit));
    return text;
}

void add_budgets(std::string& out, const std::vector<BudgetStatistics>& budgets) {
    if (budgets.empty()) return;
    // Deeper budgets are not indented further.
    constexpr std::size_t most_steps = 8;
    const std::vector<BudgetPosition> tree = budget_tree(budgets);
    const auto indented = [&](const BudgetPosition& at) {
        return std::string(2 * std::min(at.depth, most_steps), ' ') + at.budget->name;
    };
    std::size_t width = 12;
    for (const BudgetPosition& at : tree) width = std::max(width, columns(indented(at)));
    out += "tensorpool: budgets; the share is that of the hard limit, or else of the soft one\n";
    out += "  " + padded("name", width);
    add_line(out, " %10s %6s %10s %10s %10s %8s %8s %10s", "in use", "share", "soft", "hard",
             "peak", "refusals", "reclaims", "reclaimed");
    for (const BudgetPosition& at : tree) {
        const BudgetStatistics& one = *at.budget;
        out += "  " + padded(indented(at), width);
        add_line(out, " %10s %6s %10s %10s %10s %8llu %8llu %10s",
                 BytesText(one.in_use_bytes).c_str(), share_text(one).c_str(),
                 limit_text(one.soft_bytes).c_str(), limit_text(one.hard_bytes).c_str(),
                 BytesText(one.peak_bytes).c_str(), static_cast<Count>(one.refusals),
                 static_cast<Count>(one.reclaims), BytesText(one.reclaimed_bytes).c_str());
    }
}

double ms(std::uint64_t nanoseconds) noexcept {
    return static_cast<double>(nanoseconds) / 1e6;
}

void add_stashes(std::string& out, const std::vector<StashStatistics>& stashes) {
    if (stashes.empty()) return;
    std::size_t width = 12;
    for (const StashStatistics& one : stashes) width = std::max(width, columns(one.name));
    out += "tensorpool: at rest; the ratio is that of compressed and spilled bytes to the size\n";
    out += "  " + padded("name", width);
    add_line(out, " %-7s %8s %10s %10s %10s %10s %6s %9s %9s %9s %9s", "kind", "tensors",
             "in memory", "size", "compressed", "spilled", "ratio", "misses", "restores",
             "stash ms", "back ms");
    for (const StashStatistics& one : stashes) {
        out += "  " + padded(one.name, width);
        add_line(out, " %-7s %8llu %10s %10s %10s %10s %6.3f %9llu %9llu %9.1f %9.1f",
                 to_string(one.kind), static_cast<Count>(one.tensors),
                 BytesText(one.memory_bytes).c_str(), BytesText(one.stashed_bytes).c_str(),
                 BytesText(one.compressed_bytes).c_str(), BytesText(one.spilled_bytes).c_str(),
                 one.ratio(), static_cast<Count>(one.misses), static_cast<Count>(one.restores),
                 ms(one.stash_ns), ms(one.restore_ns));
    }
}

void add_scopes(std::string& out, const std::vector<ScopeStatistics>& scopes) {
    if (scopes.empty()) return;
    std::size_t width = 12;
    for (const ScopeStatistics& one : scopes) width = std::max(width, columns(one.name));
    out += "tensorpool: scopes; peaks may lag by what magazines hold\n";
    out += "  " + padded("name", width);
    add_line(out, " %12s %13s %10s %11s %12s", "calls", "allocations", "peak", "growth",
             "out of order");
    for (const ScopeStatistics& one : scopes) {
        const std::int64_t growth = one.growth_bytes();
        const auto size = static_cast<std::uint64_t>(growth < 0 ? -growth : growth);
        out += "  " + padded(one.name, width);
        add_line(out, " %12llu %13llu %10s %s%10s %12llu", static_cast<Count>(one.calls),
                 static_cast<Count>(one.allocations), BytesText(one.peak_bytes).c_str(),
                 growth < 0 ? "-" : " ", BytesText(size).c_str(),
                 static_cast<Count>(one.out_of_order));
    }
}

}  // namespace

std::string to_json(const ArenaStatistics& one) {
    return "{\"version\":" + std::to_string(one.version) + ",\"name\":" + quoted(one.name) +
           ",\"kind\":" + quoted(word_of(one.kind)) + ',' + members(one) + '}';
}

std::string to_text(const ArenaStatistics& one) {
    std::string out;
    add_line(out, "tensorpool: %s '%s'", noun_of(one.kind), one.name);
    add_line(out, "  used      %s of %s committed (%.1f %%), peak %s of %s",
             BytesText(one.used_bytes).c_str(), BytesText(one.capacity_bytes).c_str(),
             percent(one.used_bytes, one.capacity_bytes), BytesText(one.peak_used_bytes).c_str(),
             BytesText(one.peak_capacity_bytes).c_str());
    add_line(out, "  calls     %llu allocations, %llu releases",
             static_cast<Count>(one.allocations), static_cast<Count>(one.releases));
    add_line(out, "  system    reserved %s, grew %llu times by %s, gave back %llu times %s",
             BytesText(one.reserved_bytes).c_str(), static_cast<Count>(one.growths),
             BytesText(one.grown_bytes).c_str(), static_cast<Count>(one.give_backs),
             BytesText(one.given_back_bytes).c_str());
    if (one.limit_bytes != 0) add_line(out, "  limit     %s", BytesText(one.limit_bytes).c_str());
    if (one.refusals != 0) {
        add_line(out, "  refused   %llu requests", static_cast<Count>(one.refusals));
    }
    return out;
}

std::string to_json(const ContextStatistics& statistics) {
    return "{\"pool\":" + to_json(statistics.pool) + ",\"arena\":" + to_json(statistics.arena) +
           ",\"scratch\":" + to_json(statistics.scratch) + '}';
}

std::string to_text(const ContextStatistics& statistics) {
    const bool has_scratch = statistics.scratch.id != 0;
    return to_text(statistics.pool) + to_text(statistics.arena) +
           (has_scratch ? to_text(statistics.scratch) : std::string());
}

std::string to_json(const Snapshot& snapshot) {
    return "{\"version\":1,\"pools\":" + array_of(snapshot.pools) +
           ",\"arenas\":" + array_of(snapshot.arenas) +
           ",\"scratches\":" + array_of(snapshot.scratches) +
           ",\"devices\":" + array_of(snapshot.devices) +
           ",\"planned\":" + array_of(snapshot.planned) +
           ",\"budgets\":" + array_of(snapshot.budgets) +
           ",\"stashes\":" + array_of(snapshot.stashes) +
           ",\"scopes\":" + array_of(snapshot.scopes) + '}';
}

std::string to_text(const Snapshot& snapshot) {
    std::string out;
    for (const PoolStatistics& pool : snapshot.pools) out += to_text(pool);
    for (const DeviceStatistics& device : snapshot.devices) out += to_text(device);
    for (const PlannedArenaStatistics& arena : snapshot.planned) out += to_text(arena);
    add_table(out, "arenas", snapshot.arenas);
    add_table(out, "scratches", snapshot.scratches);
    add_budgets(out, snapshot.budgets);
    add_stashes(out, snapshot.stashes);
    add_scopes(out, snapshot.scopes);
    return out;
}

}  // namespace tensorpool
