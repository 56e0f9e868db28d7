// What a refused request reports about the budgets that it met.

#include <algorithm>
#include <array>
#include <cinttypes>
#include <functional>
#include <mutex>

#include "limits/budgets.hpp"

namespace tensorpool::limits {
namespace {

using base::BytesText;

constexpr std::size_t max_children = 3;
constexpr std::size_t max_holders = 3;

// The largest children, by what is charged to them.
void describe_level(const BudgetNode& node, base::FixedText& text, bool has_refused) noexcept {
    const BudgetStatistics now = node.counters().statistics();
    text.add("\n  %s'%.47s': ", has_refused ? "refused by " : "", now.name);
    text.add("%s in use of ", BytesText(now.in_use_bytes).c_str());
    text.add("%s", now.hard_bytes == 0 ? "no limit" : BytesText(now.hard_bytes).c_str());
    if (now.reserved_bytes != 0) text.add(", reserved %s", BytesText(now.reserved_bytes).c_str());
    std::array<const BudgetNode*, max_children> largest = {};
    const auto charge = [](const BudgetNode* child) {
        return child == nullptr ? 0 : child->counters().in_use();
    };
    std::size_t in_children = 0;
    for (const BudgetNode* child = node.links().children; child != nullptr;
         child = child->links().next) {
        in_children += charge(child);
        if (child->counters().is_ended() || charge(child) <= charge(largest.back())) continue;
        largest.back() = child;
        std::ranges::stable_sort(largest, std::greater<>(), charge);
    }
    for (const BudgetNode* child : largest) {
        if (child == nullptr) break;
        text.add("; '%.47s' %s", child->counters().statistics().name,
                 BytesText(charge(child)).c_str());
    }
    if (in_children != 0) {
        const std::size_t own = now.in_use_bytes - std::min(now.in_use_bytes, in_children);
        text.add("; itself %s", BytesText(own).c_str());
    }
}

// In the order in which they are asked.
void list_holders(const BudgetNode& node, base::FixedText& text) noexcept {
    const HolderEntry* entry = next_holder(node, nullptr);
    for (std::size_t i = 0; entry != nullptr && i != max_holders; ++i) {
        text.add("%s'%s'", i == 0 ? ": " : ", ", entry->name);
        entry = next_holder(node, &entry->position);
    }
    if (entry != nullptr) text.add(", ...");
}

}  // namespace

void BudgetRequest::describe(base::FixedText& text) const noexcept {
    if (refused_by_ == nullptr) return;
    const std::lock_guard guard(budgets().mutex);
    text.add("\n  holders gave %s", BytesText(reclaimed_).c_str());
    list_holders(*refused_by_, text);
    // First, so that a long text is not cut off before it.
    if (!refused_by_->counters().is_ended()) describe_level(*refused_by_, text, true);
    for (const BudgetNode* node = charged_; node != nullptr; node = node->links().parent) {
        if (!node->counters().is_ended() && node != refused_by_) describe_level(*node, text, false);
    }
}

}  // namespace tensorpool::limits
