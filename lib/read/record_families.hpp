#pragma once

#include <limits>
#include <set>

#include <tensorpool/metrics.hpp>

#include "read/record_text.hpp"

namespace tensorpool::read {

using statistics::Family;
using statistics::Field;
using statistics::MetricKind;
using statistics::RecordTable;
using Labels = std::vector<std::pair<std::string, std::string>>;
using base::valid_utf8;

/// Gives each record a unique name. If a name is already taken, the number of the record is
/// appended.
class UniqueNames {
public:
    std::string claim(const std::string& name, std::uint64_t id) {
        std::string text = valid_utf8(name.c_str());
        if (!taken_.insert(text).second) {
            text += " #" + std::to_string(id);
            const std::string numbered = text;
            while (!taken_.insert(text).second) {
                text = numbered + '\'';
                text += std::to_string(++repeated_);
            }
        }
        return text;
    }

private:
    std::set<std::string> taken_;
    // For numbers that occur twice, as in a segment that was overwritten. One counter for all
    // names, so that thousands of equal names take no longer than others.
    std::uint64_t repeated_ = 0;
};

constexpr MetricFamily::Kind kind_of(MetricKind kind) noexcept {
    return kind == MetricKind::total ? MetricFamily::Kind::counter : MetricFamily::Kind::gauge;
}

/// Returns the sentence of a metric, followed by PyTorch's name if there is one.
inline std::string help_of(const Field& field) {
    std::string help(field.sentence);
    return field.pytorch.empty() ? help : help + " PyTorch: " + std::string(field.pytorch) + '.';
}

inline double scaled(Family::Scale scale, std::uint64_t value) noexcept {
    if (scale == Family::seconds) return static_cast<double>(value) / 1e9;
    if (scale == Family::limit && value == 0) return std::numeric_limits<double>::infinity();
    return static_cast<double>(value);
}

/// Adds a sample for each value of the label that divides the metric.
inline void add_parts(MetricFamily& to, const Family& family, const RecordTable& table,
                      const RecordGroup::Record& record, const Labels& labels) {
    const auto add = [&](std::string_view label, double value) {
        to.samples.push_back({labels, value});
        if (family.label.empty()) return;
        to.samples.back().labels.emplace_back(family.label, label);
    };
    if (family.label.empty()) {
        return add("", scaled(family.scale, record.values[family.parts[0]]));
    }
    std::size_t next = 0;
    if (family.values.empty()) {
        return statistics::for_each_value(table.choice.values, [&](std::string_view value) {
            add(value, next++ == record.choice ? 1 : 0);
        });
    }
    statistics::for_each_value(family.values, [&](std::string_view value) {
        add(value, scaled(family.scale, record.values[family.parts[next++]]));
    });
}

// A path of more names begins with "...". No program nests so deeply.
inline constexpr std::size_t most_names = 16;

inline std::string path_text(const std::vector<const std::string*>& path) {
    const std::size_t first = path.size() - std::min(path.size(), most_names);
    std::string text = first == 0 ? "" : ".../";
    for (std::size_t at = first; at != path.size(); ++at) {
        if (at != first) text += '/';
        text += *path[at];
    }
    return text;
}

/// Collects metrics. Families are in the order in which the tables of the records have them.
class FamilyList {
public:
    /// Adds the records of a group, each with the labels of its process, its text and its name. In
    /// a tree, the name is the path to it.
    void add(const Labels& process, const RecordGroup& group, UniqueNames& names) {
        const RecordTable& table = *group.table;
        std::vector<const std::string*> path;
        for (const Position& at : tree_of(group)) {
            const RecordGroup::Record& record = group.records[at.index];
            path.resize(at.depth);
            path.push_back(&record.name);
            Labels labels = process;
            if (!table.text.name.empty()) {
                labels.emplace_back(table.text.name, valid_utf8(record.text.c_str()));
            }
            if (!table.label.empty()) {
                const std::uint64_t number = record.id != 0 ? record.id : at.index + 1;
                labels.emplace_back(table.label, names.claim(path_text(path), number));
            }
            add(table, record, labels);
        }
    }
    MetricFamily& get(std::string_view name, const std::string& help, MetricFamily::Kind kind) {
        const auto known = indices_.find(name);
        if (known != indices_.end()) return families_[known->second];
        indices_.emplace(name, families_.size());
        return families_.emplace_back(MetricFamily{std::string(name), help, kind, {}});
    }
    std::vector<MetricFamily> take() noexcept { return std::move(families_); }

private:
    void add(const RecordTable& table, const RecordGroup::Record& record, const Labels& labels) {
        for (std::size_t i = 0; i != table.shown(); ++i) {
            const Field& field = table.fields[i];
            if (field.prometheus.empty()) continue;
            get(field.prometheus, help_of(field), kind_of(field.kind))
                .samples.push_back({labels, static_cast<double>(record.values[i])});
        }
        for (const Family& family : table.families) {
            add_parts(get(family.name, std::string(family.sentence), kind_of(family.kind)), family,
                      table, record, labels);
        }
    }

    std::vector<MetricFamily> families_;
    std::map<std::string, std::size_t, std::less<>> indices_;
};

}  // namespace tensorpool::read
