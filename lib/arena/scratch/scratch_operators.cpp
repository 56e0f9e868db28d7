#include "arena/scratch/scratch_operators.hpp"

#include <algorithm>
#include <new>

namespace tensorpool {
namespace arena {

// Never destroyed: threads, and scopes with them, may end after static objects are destroyed.
ScratchOperators& scratch_operators() {
    static ScratchOperators& operators = *new ScratchOperators();
    return operators;
}

ScratchOperators::Entry ScratchOperators::find_or_add(std::string_view name) {
    const std::lock_guard guard(mutex_);
    auto at = operators_.find(name);
    if (at == operators_.end()) at = operators_.try_emplace(std::string(name)).first;
    return {at->first, &at->second};
}

std::string ScratchOperators::name_of(const detail::ScratchOperator* known) const {
    const std::lock_guard guard(mutex_);
    for (const auto& [name, one] : operators_) {
        if (&one == known) return name;
    }
    return "";
}

ScratchReport ScratchOperators::report() const {
    const auto read = [](const std::atomic<std::uint64_t>& value) {
        return value.load(std::memory_order_relaxed);
    };
    ScratchReport report;
    const std::lock_guard guard(mutex_);
    for (const auto& [name, known] : operators_) {
        report.operators.push_back({name, read(known.calls), read(known.peak_bytes),
                                    read(known.growths), read(known.grown_bytes)});
    }
    std::stable_sort(report.operators.begin(), report.operators.end(),
                     [](const OperatorScratch& one, const OperatorScratch& other) {
                         return one.peak_bytes > other.peak_bytes;
                     });
    return report;
}

detail::ScratchOperator* KnownOperators::find(std::string_view name) noexcept {
    if (const auto known = known_.find(name); known != known_.end()) return known->second;
    try {
        const ScratchOperators::Entry entry = scratch_operators().find_or_add(name);
        known_.emplace(entry.name, entry.found);
        return entry.found;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

}  // namespace arena

ScratchReport scratch_report() {
    return arena::scratch_operators().report();
}

}  // namespace tensorpool
