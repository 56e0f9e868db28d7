#pragma once

/// @file
/// Tables of records of any kind: budgets, arenas, and those that this program does not know.

#include <functional>

#include <tensorpool/record_group.hpp>

#include "common/cells.hpp"

namespace tensorpool::command {

/// What earlier snapshots say of the records.
struct RecordHistory {
    std::vector<RecordGroup> before;
    double seconds = 0;  ///< since `before`; 0: there are no rates
    /// The highest value seen of a record, by `record_key`.
    std::function<std::uint64_t(const std::string& key)> highest;
};

using Show = RecordColumn::Show;

inline constexpr std::size_t bar_columns = 10;

inline Column usual_column(const RecordColumn& column) {
    const char* const title = column.title.c_str();
    switch (column.show) {
        case Show::name:
            return text_column(title, 12);
        case Show::choice:
        case Show::text:
            return text_column(title, 7);
        case Show::reference:
            return text_column(title, 8);
        case Show::bar:
            return {title, Side::left, bar_columns + 2};
        case Show::part:
            return part_column(title);
        case Show::count:
        case Show::number:
        case Show::rate:
            return count_column(title);
        case Show::seconds:
            return {title, Side::right, 7};
        default:
            return size_column(title);
    }
}

inline Column column_of(const RecordColumn& column) {
    Column made = usual_column(column);
    if (column.width != 0) made.min_width = column.width;
    return made;
}

/// A bar of a part, such as "[####      ]". Empty without a whole.
inline Cell bar_cell(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return {"", 0};
    const double share = std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
    const auto filled = static_cast<std::size_t>(std::lround(share * bar_columns));
    return {'[' + std::string(filled, '#') + std::string(bar_columns - filled, ' ') + ']', share};
}

inline Cell seconds_cell(std::uint64_t nanoseconds) {
    const double seconds = static_cast<double>(nanoseconds) / 1e9;
    return {fmt::format("{:.2f}", seconds), seconds};
}

inline Cell cell_of(const RecordCell& from, Sizes sizes) {
    switch (from.show) {
        case Show::size:
            return size_cell(from.number, sizes);
        case Show::size_if_known:
            return from.number == 0 ? Cell{"-", 0} : size_cell(from.number, sizes);
        case Show::limit:
            return limit_cell(from.number, sizes);
        case Show::count:
            return count_cell(from.number);
        case Show::number:
            return number_cell(from.number);
        case Show::growth:
            return growth_cell(static_cast<std::int64_t>(from.number), sizes);
        case Show::part:
            return part_cell(from.number, from.whole);
        case Show::bar:
            return bar_cell(from.number, from.whole);
        case Show::seconds:
            return seconds_cell(from.number);
        default:
            return text_cell(from.text);
    }
}

/// Identifies a record of a kind, such as "arena 5".
inline std::string record_key(const std::string& of, std::uint64_t id) {
    return fmt::format("{} {}", of, id);
}

class Cells {
public:
    Cells(const std::vector<RecordGroup>& groups, const RecordGroup& group, Sizes sizes,
          const RecordHistory& history)
        : group_(group), grid_(to_grid(groups, group)), sizes_(sizes), history_(history) {
        const auto before = std::ranges::find(history.before, group.name, &RecordGroup::name);
        if (before == history.before.end()) return;
        before_ = &*before;
        grid_before_ = to_grid(history.before, *before);
    }
    const RecordGrid& grid() const { return grid_; }

    Cell cell(const RecordRow& row, std::size_t column) const {
        const RecordCell& from = row.cells[column];
        switch (from.show) {
            case Show::name:
                return text_cell(std::string(2 * row.depth, ' ') + from.text);
            case Show::rate:
                return count_cell(rate(row, column));
            case Show::highest:
                return size_cell(history_.highest ? history_.highest(key(row)) : 0, sizes_);
            default:
                return cell_of(from, sizes_);
        }
    }

private:
    std::string key(const RecordRow& row) const {
        return record_key(grid_.of, group_.records[row.record].id);
    }
    double rate(const RecordRow& row, std::size_t column) const {
        if (before_ == nullptr || history_.seconds <= 0) return 0;
        const std::uint64_t id = group_.records[row.record].id;
        for (const RecordRow& old : grid_before_.rows) {
            if (before_->records[old.record].id != id) continue;
            const std::uint64_t now = row.cells[column].number;
            const std::uint64_t then = old.cells[column].number;
            return now <= then ? 0 : static_cast<double>(now - then) / history_.seconds;
        }
        return 0;
    }

    const RecordGroup& group_;
    RecordGrid grid_;
    Sizes sizes_;
    const RecordHistory& history_;
    const RecordGroup* before_ = nullptr;
    RecordGrid grid_before_;
};

/// One row for each record of the groups of these names, which are of one kind.
inline Table record_table(const std::vector<RecordGroup>& groups,
                          std::span<const std::string_view> names, Sizes sizes,
                          const RecordHistory& history = {}) {
    Table table;
    for (const RecordGroup& group : groups) {
        if (std::ranges::find(names, group.name) == names.end()) continue;
        const Cells cells(groups, group, sizes, history);
        table.columns.clear();
        for (const RecordColumn& column : cells.grid().columns) {
            table.columns.push_back(column_of(column));
        }
        for (const RecordRow& row : cells.grid().rows) {
            auto& to = table.rows.emplace_back();
            for (std::size_t i = 0; i < row.cells.size(); ++i) to.push_back(cells.cell(row, i));
            const RecordGroup::Record& record = group.records[row.record];
            table.keys.push_back(record.id == 0 ? record.name : std::to_string(record.id));
        }
    }
    return table;
}

/// One row for each value of a record, with PyTorch's names if there are some.
inline Table details_table(const RecordGroup& group, const RecordGroup::Record& record,
                           Sizes sizes) {
    Table table;
    const RecordGrid grid = to_details(group, record);
    for (const RecordColumn& column : grid.columns) table.columns.push_back(column_of(column));
    for (const RecordRow& row : grid.rows) {
        auto& to = table.rows.emplace_back();
        for (const RecordCell& cell : row.cells) to.push_back(cell_of(cell, sizes));
        table.keys.push_back(row.cells.front().text);
    }
    return table;
}

/// One row for each record of all groups, with all that its columns say in one.
inline Table mixed_table(const std::vector<RecordGroup>& groups, Sizes sizes) {
    Table table;
    const RecordHistory history;
    table.columns = {text_column("KIND", 12), text_column("NAME", 12), text_column("VALUES", 20)};
    for (const RecordGroup& group : groups) {
        const Cells cells(groups, group, sizes, history);
        const auto& columns = cells.grid().columns;
        for (const RecordRow& row : cells.grid().rows) {
            std::string values;
            for (std::size_t i = 0; i < columns.size(); ++i) {
                if (columns[i].show == Show::name || columns[i].show == Show::bar) continue;
                values += fmt::format("{}{} {}", values.empty() ? "" : ", ", columns[i].title,
                                      cells.cell(row, i).text);
            }
            const std::string& name = group.records[row.record].name;
            table.rows.push_back({text_cell(group.name), text_cell(name), {printable(values), 0}});
            table.keys.push_back(group.name + ' ' + name);
        }
    }
    return table;
}

}  // namespace tensorpool::command
