#include "read/record_text.hpp"

#include <cctype>
#include <utility>

#include <tensorpool/timeline.hpp>

#include "base/text.hpp"

namespace tensorpool {
namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;

/// Formats a time of day such as "23:59:59.999", in UTC.
std::string time_of_day(std::uint64_t time_ns) {
    const std::uint64_t ms = time_ns / ns_per_ms % 86'400'000;
    char text[16];
    std::snprintf(text, sizeof text, "%02u:%02u:%02u.%03u", static_cast<unsigned>(ms / 3'600'000),
                  static_cast<unsigned>(ms / 60'000 % 60), static_cast<unsigned>(ms / 1000 % 60),
                  static_cast<unsigned>(ms % 1000));
    return text;
}

/// Removes control characters from a name that another process chose, so that they cannot affect
/// the terminal. `quoted` escapes those of ASCII; this function replaces DEL and the second set
/// (U+0080 to U+009F).
std::string printable(const std::string& name) {
    std::string out = base::quoted(name.c_str());
    out = out.substr(1, out.size() - 2);
    for (std::size_t at = 0; at < out.size(); ++at) {
        const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(out[i]); };
        if (byte(at) == 0xC2 && byte(at + 1) < 0xA0) out.replace(at, 2, "?");
        if (byte(at) == 0x7F) out[at] = '?';
    }
    return out;
}

}  // namespace
namespace read {
namespace {

using namespace statistics;
using base::BytesText;
using base::percent;
using base::quoted;
using Record = RecordGroup::Record;
using Show = RecordColumn::Show;

// Deeper records are not indented further.
constexpr std::size_t most_steps = 8;

std::string quoted_text(std::string_view text) {
    return quoted(std::string(text).c_str());
}

std::string choice_in(const RecordTable& table, const Record& record) {
    return std::string(value_at(table.choice.values, record.choice));
}

/// Returns how many columns a terminal needs for the text: the number of bytes that begin a UTF-8
/// character.
std::size_t columns_of(const std::string& text) noexcept {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool is_right) {
    const std::string spaces(width - std::min(width, columns_of(text)), ' ');
    return is_right ? spaces + text : text + spaces;
}

std::string formatted(const char* format, double value) {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string growth_text(std::uint64_t value) {
    const bool is_less = static_cast<std::int64_t>(value) < 0;
    return std::string(is_less ? "-" : "") + BytesText(is_less ? 0 - value : value).c_str();
}

bool is_text(Show show) noexcept {
    return show == Show::name || show == Show::choice || show == Show::text ||
           show == Show::reference;
}

std::string cell_text(const RecordCell& cell) {
    if (is_text(cell.show)) return cell.text;
    switch (cell.show) {
        case Show::size:
            return BytesText(cell.number).c_str();
        case Show::size_if_known:
            return cell.number == 0 ? "-" : BytesText(cell.number).c_str();
        case Show::limit:
            return cell.number == 0 ? "none" : BytesText(cell.number).c_str();
        case Show::growth:
            return growth_text(cell.number);
        case Show::part:
            return cell.whole == 0 ? "-" : formatted("%.1f %%", percent(cell.number, cell.whole));
        case Show::seconds:
            return formatted("%.2f", static_cast<double>(cell.number) / 1e9);
        default:
            return std::to_string(cell.number);
    }
}

/// Returns whether one snapshot has all that a text of the column needs.
bool is_complete(Show show) noexcept {
    return show != Show::bar && show != Show::rate && show != Show::highest;
}

std::string name_with(std::uint64_t id, std::string_view kind,
                      const std::vector<RecordGroup>& groups) {
    if (id == 0) return "none";
    for (const RecordGroup& group : groups) {
        if (group.name != kind) continue;
        const auto found = std::ranges::find(group.records, id, &Record::id);
        if (found != group.records.end()) return found->name;
    }
    return "ended";
}

RecordCell cell_of(const RecordTable& table, const Column& column, const Record& record,
                   const std::vector<RecordGroup>& groups) {
    const auto value = [&](std::uint8_t field) {
        return field == no_field ? 0 : record.values[field];
    };
    RecordCell cell{
        .show = column.show, .text = {}, .number = value(column.value), .whole = value(column.of)};
    if (column.show == Column::name) cell.text = record.name;
    if (column.show == Column::choice) cell.text = choice_in(table, record);
    if (column.show == Column::text) cell.text = record.text;
    if (column.show == Column::reference)
        cell.text = name_with(cell.number, column.of_kind, groups);
    return cell;
}

Show show_of(const Field& field) noexcept {
    if (field.unit == "bytes") return Show::size;
    return field.unit == "number" || field.unit == "nanoseconds" ? Show::number : Show::count;
}

std::string cell_json(const RecordCell& cell) {
    if (is_text(cell.show)) return quoted(cell.text.c_str());
    std::string number = std::to_string(cell.number);
    if (cell.show != Show::part && cell.show != Show::bar) return number;
    return '[' + number + ',' + std::to_string(cell.whole) + ']';
}

std::string column_json(const RecordColumn& column) {
    static constexpr const char* words[] = {
        "name", "size",    "size_if_known", "limit", "count",     "number", "growth", "part",
        "bar",  "seconds", "choice",        "text",  "reference", "rate",   "highest"};
    return "{\"title\":" + quoted(column.title.c_str()) + ",\"show\":\"" +
           words[static_cast<unsigned>(column.show)] +
           "\",\"about\":" + quoted(column.about.c_str()) + '}';
}

std::string row_json(const RecordRow& row, const Record& record) {
    return "{\"id\":" + std::to_string(record.id) + ",\"record\":" + std::to_string(row.record) +
           ",\"depth\":" + std::to_string(row.depth) +
           ",\"cells\":" + json_list(row.cells, cell_json) + '}';
}

std::string title_of(const RecordGroup& group) {
    return group.table->name == group.name ? std::string(group.table->title) : group.name;
}

std::string about(const RecordTable& table, const Column& column) {
    if (!column.about.empty()) return std::string(column.about);
    return column.value == no_field ? "" : std::string(table.fields[column.value].sentence);
}

class TextTable {
public:
    void add(std::vector<std::string> row) {
        widths_.resize(std::max(widths_.size(), row.size()));
        for (std::size_t i = 0; i != row.size(); ++i) {
            widths_[i] = std::max(widths_[i], columns_of(row[i]));
        }
        rows_.push_back(std::move(row));
    }
    std::string text(const std::vector<bool>& is_right) const {
        std::string out;
        for (const auto& row : rows_) {
            std::string line = " ";
            for (std::size_t i = 0; i != row.size(); ++i) {
                line += ' ' + padded(row[i], widths_[i], is_right[i]);
            }
            out += line.erase(line.find_last_not_of(' ') + 1) + '\n';
        }
        return out;
    }

private:
    std::vector<std::size_t> widths_ = {12};
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace

std::string json_members(const RecordTable& table, std::span<const std::uint64_t> values) {
    std::string out;
    for (std::size_t i = 0; i != table.shown(); ++i) {
        if (i != 0) out += ',';
        out += quoted_text(table.fields[i].name) + ':' + std::to_string(values[i]);
    }
    return out;
}

std::string json_of(const RecordTable& table, const Record& record) {
    std::string out = "{";
    const auto add = [&](std::string_view name, const std::string& json) {
        if (out.size() > 1) out += ',';
        out += quoted_text(name) + ':' + json;
    };
    if (table.version != 0) add("version", std::to_string(table.version));
    if (table.name_word != no_word) add("name", quoted(record.name.c_str()));
    if (!table.choice.name.empty()) add(table.choice.name, quoted_text(choice_in(table, record)));
    if (!table.text.name.empty()) add(table.text.name, quoted(record.text.c_str()));
    if (out.size() > 1) out += ',';
    return out + json_members(table, record.values) + '}';
}

// A parent is older than its children, so its number is lower. Whatever an overwritten segment
// contains, no record is therefore below itself.
std::vector<Position> tree_of(const RecordGroup& group) {
    constexpr std::size_t none = SIZE_MAX;
    const std::vector<Record>& all = group.records;
    const std::uint8_t field = group.table->parent;
    // Of each record, the first child and the next one with the same parent.
    std::vector<std::pair<std::size_t, std::size_t>> links(all.size(), {none, none});
    std::size_t first_root = none;
    for (std::size_t index = all.size(); index-- != 0;) {
        const std::uint64_t parent = field == no_field ? 0 : all[index].values[field];
        const auto found = std::ranges::lower_bound(all, parent, {}, &Record::id);
        const auto above = static_cast<std::size_t>(found - all.begin());
        const bool has_parent =
            parent != 0 && parent < all[index].id && above < index && all[above].id == parent;
        std::size_t& list = has_parent ? links[above].first : first_root;
        links[index].second = std::exchange(list, index);
    }
    std::vector<Position> tree;
    tree.reserve(all.size());
    std::vector<std::size_t> path;  // of records whose next one is due
    std::size_t next = first_root;
    while (next != none || !path.empty()) {
        if (next == none) {
            next = links[path.back()].second;
            path.pop_back();
            continue;
        }
        tree.push_back({next, path.size()});
        path.push_back(next);
        next = links[next].first;
    }
    return tree;
}

}  // namespace read

RecordGrid to_grid(const std::vector<RecordGroup>& groups, const RecordGroup& group) {
    const statistics::RecordTable& table = *group.table;
    RecordGrid grid;
    grid.of = table.of;
    for (const statistics::Column& column : table.columns) {
        grid.columns.push_back(
            {std::string(column.title), column.show, read::about(table, column), column.width});
    }
    for (const read::Position& at : read::tree_of(group)) {
        RecordRow& row = grid.rows.emplace_back();
        row.record = at.index;
        row.depth = std::min(at.depth, read::most_steps);
        for (const statistics::Column& column : table.columns) {
            row.cells.push_back(read::cell_of(table, column, group.records[at.index], groups));
        }
    }
    return grid;
}

RecordGrid to_details(const RecordGroup& group, const RecordGroup::Record& record) {
    using Show = RecordColumn::Show;
    const auto fields = group.table->shown_fields();
    const bool has_words = std::ranges::any_of(
        fields, [](const statistics::Field& field) { return !field.pytorch.empty(); });
    RecordGrid grid;
    grid.of = group.table->of;
    grid.columns = {{"NAME", Show::text, "", 24}};
    if (has_words) grid.columns.push_back({"PYTORCH", Show::text, "", 20});
    grid.columns.push_back({"VALUE", Show::size, "", 10});
    for (std::size_t i = 0; i != fields.size(); ++i) {
        RecordRow& row = grid.rows.emplace_back();
        row.record = i;
        row.cells.push_back({.show = Show::text, .text = std::string(fields[i].name)});
        if (has_words) {
            row.cells.push_back({.show = Show::text, .text = std::string(fields[i].pytorch)});
        }
        row.cells.push_back(
            {.show = read::show_of(fields[i]), .text = {}, .number = record.values[i]});
    }
    return grid;
}

std::string read::report_of(const RecordGroup& group) {
    const statistics::RecordTable& table = *group.table;
    const RecordGroup::Record& record = group.records.front();
    const std::string_view title = table.title;
    std::string out =
        "tensorpool: " + std::string(title.substr(0, title.find(';'))) + ": '" + record.name + '\'';
    if (table.choice.word != statistics::no_word) out += ", " + choice_in(table, record);
    if (!record.text.empty()) out += ", " + record.text;
    TextTable lines;
    for (const RecordRow& row : to_details(group, record).rows) {
        if (row.cells.back().number == 0) continue;
        std::vector<std::string> texts;
        for (const RecordCell& cell : row.cells) texts.push_back(cell_text(cell));
        lines.add(std::move(texts));
    }
    return out + '\n' + lines.text({false, false, false});
}

std::string to_text(const std::vector<RecordGroup>& groups, const RecordGroup& group) {
    if (group.records.empty()) return "";
    const RecordGrid grid = to_grid(groups, group);
    read::TextTable lines;
    std::vector<std::string> titles;
    std::vector<bool> is_right;
    for (const RecordColumn& column : grid.columns) {
        if (!read::is_complete(column.show)) continue;
        titles.push_back(column.title);
        std::ranges::transform(titles.back(), titles.back().begin(),
                               [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        is_right.push_back(!read::is_text(column.show));
    }
    lines.add(std::move(titles));
    for (const RecordRow& row : grid.rows) {
        std::vector<std::string> texts;
        for (std::size_t i = 0; i != row.cells.size(); ++i) {
            const RecordCell& cell = row.cells[i];
            if (read::is_complete(cell.show)) texts.push_back(read::cell_text(cell));
        }
        texts.front().insert(0, 2 * row.depth, ' ');
        lines.add(std::move(texts));
    }
    return "tensorpool: " + read::title_of(group) + '\n' + lines.text(is_right);
}

std::string to_json(const RecordGroup& group) {
    return read::json_list(group.records, [&](const RecordGroup::Record& record) {
        return read::json_of(*group.table, record);
    });
}

std::string tables_json(const std::vector<RecordGroup>& groups) {
    return read::json_list(groups, [&](const RecordGroup& group) {
        const RecordGrid grid = to_grid(groups, group);
        return "{\"name\":" + base::quoted(group.name.c_str()) +
               ",\"of\":" + base::quoted(grid.of.c_str()) +
               ",\"title\":" + base::quoted(read::title_of(group).c_str()) +
               ",\"columns\":" + read::json_list(grid.columns, read::column_json) + ",\"rows\":" +
               read::json_list(grid.rows,
                               [&](const RecordRow& row) {
                                   return read::row_json(row, group.records[row.record]);
                               }) +
               '}';
    });
}

const char* to_string(EntryKind kind) noexcept {
    static constexpr const char* words[entry_kind_count] = {
        "?",      "growth",    "give-back", "pressure",  "limit",   "failure",   "check",
        "scope",  "mark",      "completed", "coalesced", "aged",    "callbacks", "uncached",
        "waited", "allocated", "recycled",  "freed",     "profile", "plan",      "drift"};
    return base::text_of(words, kind);
}

const char* to_string(LimitKind kind) noexcept {
    static constexpr const char* words[limit_kind_count] = {
        "", "max_allocation", "max_capacity", "memory", "address space", "records"};
    return base::text_of(words, kind);
}

std::string to_json(const TimelineEntry& entry) {
    using base::quoted;
    return "{\"number\":" + std::to_string(entry.number) +
           ",\"time_ns\":" + std::to_string(entry.time_ns) +
           ",\"thread\":" + std::to_string(entry.thread) +
           ",\"kind\":" + quoted(to_string(entry.kind)) +
           ",\"limit\":" + quoted(to_string(entry.limit)) +
           ",\"bytes\":" + std::to_string(entry.bytes) + ",\"name\":" + quoted(entry.name.c_str()) +
           '}';
}

std::string to_text(const TimelineEntry& entry) {
    std::string out = time_of_day(entry.time_ns) + "  ";
    char kind[16];
    std::snprintf(kind, sizeof kind, "%-9s", to_string(entry.kind));
    out += std::string(kind) + "  " + printable(entry.name);
    if (entry.bytes != 0) out += std::string("  ") + base::BytesText(entry.bytes).c_str();
    if (entry.limit != LimitKind::none) out += std::string("  (") + to_string(entry.limit) + ')';
    return out;
}

}  // namespace tensorpool
