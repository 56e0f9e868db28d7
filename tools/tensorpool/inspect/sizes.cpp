#include "inspect/sizes.hpp"

#include <algorithm>
#include <unordered_map>

namespace tensorpool::command::inspect {
namespace {

std::vector<SizeRow> all_sizes(const History& history) {
    std::unordered_map<std::uint64_t, std::uint64_t> requests;
    for (const Life& life : history.lives()) {
        if (life.begin != Life::none && !life.continues) ++requests[life.bytes];
    }
    std::vector<SizeRow> rows;
    for (const auto& [bytes, count] : requests) rows.push_back({bytes, count});
    return rows;
}

// Of equal ones the larger size first, so that the order is always the same.
template <class Key>
std::vector<SizeRow> largest(const History& history, std::size_t most, Key key) {
    std::vector<SizeRow> rows = all_sizes(history);
    std::ranges::sort(rows, [&](const SizeRow& one, const SizeRow& other) {
        return key(one) != key(other) ? key(one) > key(other) : one.bytes > other.bytes;
    });
    rows.resize(std::min(rows.size(), most));
    return rows;
}

}  // namespace

std::vector<SizeRow> largest_by_bytes(const History& history, std::size_t most) {
    return largest(history, most, [](const SizeRow& row) { return row.total(); });
}

std::vector<SizeRow> largest_by_requests(const History& history, std::size_t most) {
    return largest(history, most, [](const SizeRow& row) { return row.requests; });
}

}  // namespace tensorpool::command::inspect
