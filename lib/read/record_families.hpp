#pragma once

#include <set>

#include <tensorpool/metrics.hpp>

#include "statistics/records/record_table.hpp"

namespace tensorpool::read {

using Labels = std::vector<std::pair<std::string, std::string>>;

/// Gives each record a unique name. If a name is already taken, the number of the record is
/// appended.
class UniqueNames {
public:
    std::string claim(const std::string& name, std::uint64_t id);

private:
    std::set<std::string> taken_;
    // For numbers that occur twice, as in a segment that was overwritten. One counter for all
    // names, so that thousands of equal names take no longer than others.
    std::uint64_t repeated_ = 0;
};

/// Collects metrics. Families are in the order in which the tables of the records have them.
class FamilyList {
public:
    /// Adds the records of a group, each with the labels of its process, its text and its name. In
    /// a tree, the name is the path to it.
    void add(const Labels& process, const RecordGroup& group, UniqueNames& names);
    MetricFamily& get(std::string_view name, const std::string& help, MetricFamily::Kind kind);
    std::vector<MetricFamily> take() noexcept { return std::move(families_); }

private:
    void add(const statistics::RecordTable& table, const RecordGroup::Record& record,
             const Labels& labels);

    std::vector<MetricFamily> families_;
    std::map<std::string, std::size_t, std::less<>> indices_;
};

}  // namespace tensorpool::read
