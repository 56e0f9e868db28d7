#include "top/highest.hpp"

#include <algorithm>

namespace tensorpool::command {

std::uint64_t Highest::record(const std::string& key, std::uint64_t value) {
    Seen& seen = seen_[key];
    seen.last = value;
    seen.highest = std::max(seen.highest, value);
    return seen.highest;
}

void Highest::reset() {
    for (auto& [key, seen] : seen_) seen.highest = seen.last;
}

std::uint64_t Highest::get(const std::string& key) const {
    const auto found = seen_.find(key);
    return found == seen_.end() ? 0 : found->second.highest;
}

}  // namespace tensorpool::command
