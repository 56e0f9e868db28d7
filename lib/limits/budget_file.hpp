#pragma once

#include <algorithm>
#include <array>
#include <variant>

#include <tensorpool/budget.hpp>

#include "platform/environment.hpp"
#include "platform/files/input_file.hpp"

namespace tensorpool::limits {

/// What a line of a file of budgets limits.
enum class BudgetSubject : std::uint8_t { process, pool, scope };

/// A line such as "pool cache hard=2GiB soft=1GiB". The name is part of the line.
struct BudgetEntry {
    BudgetSubject subject;
    std::string_view name;
    BudgetLimits limits;
};
/// What is wrong with a line.
struct BudgetProblem {
    std::string_view found;
    const char* expected;
};

// Returns what was expected of the line if the entry is incomplete.
inline const char* missing(const BudgetEntry& entry) noexcept {
    const bool is_process = entry.subject == BudgetSubject::process;
    if (is_process && !entry.name.empty()) return "no name, but hard=SIZE or soft=SIZE";
    if (!is_process && entry.name.empty()) return "the name of a pool or scope";
    if (entry.name.size() > 47) return "a name of at most 47 bytes";
    if (entry.limits.hard == 0 && entry.limits.soft == 0) return "hard=SIZE or soft=SIZE";
    if (entry.limits.hard != 0 && entry.limits.soft > entry.limits.hard) {
        return "a soft limit that does not exceed the hard one";
    }
    return nullptr;
}

// A negative number that becomes a size is larger.
inline constexpr std::size_t max_limit = std::size_t{1} << 60;

inline std::optional<std::size_t> parse_limit(std::string_view text) noexcept {
    const std::optional<std::size_t> bytes = platform::parse_bytes(text);
    return bytes && *bytes != 0 && *bytes <= max_limit ? bytes : std::nullopt;
}

// Returns what was expected if the field is no limit or its limit was set before.
inline const char* set_limit(std::string_view field, BudgetLimits& limits) noexcept {
    const bool is_hard = field.starts_with("hard=");
    if (!is_hard && !field.starts_with("soft=")) return "hard=SIZE or soft=SIZE";
    std::size_t& limit = is_hard ? limits.hard : limits.soft;
    if (limit != 0) return "each limit once";
    const std::optional<std::size_t> bytes = parse_limit(field.substr(5));
    if (!bytes) return "a size above 0 such as 512MiB or 2GiB";
    limit = *bytes;
    return nullptr;
}

inline constexpr std::string_view blanks = " \t\r";

/// The fields of a line, up to a comment.
class Fields {
public:
    explicit Fields(std::string_view line) noexcept : rest_(line) {}

    /// Returns the next field; "" at the end.
    std::string_view next() noexcept {
        rest_.remove_prefix(std::min(rest_.find_first_not_of(blanks), rest_.size()));
        if (rest_.starts_with('#')) rest_ = {};
        const std::string_view field = rest_.substr(0, rest_.find_first_of(blanks));
        rest_.remove_prefix(field.size());
        return field;
    }

private:
    std::string_view rest_;
};

/// Parses a line; monostate stands for an empty one or a comment. Allocates nothing. A name may
/// have blanks in it, but no '=', so a misspelt limit does not become a part of it.
inline std::variant<std::monostate, BudgetEntry, BudgetProblem> parse_budget_line(
    std::string_view line) noexcept {
    static constexpr platform::Named<BudgetSubject> subjects[] = {
        {"process", BudgetSubject::process},
        {"pool", BudgetSubject::pool},
        {"scope", BudgetSubject::scope}};
    Fields fields(line);
    const std::string_view first = fields.next();
    if (first.empty()) return std::monostate();
    const auto subject = platform::parse_choice(first, subjects);
    if (!subject) return BudgetProblem{first, "process, pool or scope"};
    BudgetEntry entry{*subject, {}, {}};
    std::string_view field = fields.next();
    const char* const name = field.data();
    for (; !field.empty() && field.find('=') == field.npos; field = fields.next()) {
        entry.name = {name, static_cast<std::size_t>(field.end() - name)};
    }
    for (; !field.empty(); field = fields.next()) {
        const char* const expected = set_limit(field, entry.limits);
        if (expected != nullptr) return BudgetProblem{field, expected};
    }
    const char* const expected = missing(entry);
    if (expected != nullptr) return BudgetProblem{line, expected};
    return entry;
}

/// The text of a file of budgets. Reading it takes no memory from malloc, which this library may
/// serve.
class BudgetText {
public:
    static constexpr std::size_t max_bytes = std::size_t{64} << 10;

    explicit BudgetText(const char* path) {
        const auto file = platform::InputFile::open(path, error_);
        if (!file) return;
        if (file.kind() == platform::FileKind::folder) {
            error_ = std::make_error_code(std::errc::is_a_directory);
        } else if (file.kind() != platform::FileKind::regular) {
            error_ = std::make_error_code(std::errc::invalid_seek);
        } else if (file.bytes() > max_bytes) {
            error_ = std::make_error_code(std::errc::file_too_large);
        } else {
            text_ = static_cast<char*>(platform::map(max_bytes, platform::page_bytes()));
            if (text_ == nullptr) {
                error_ = std::make_error_code(std::errc::not_enough_memory);
            } else {
                bytes_ = file.read(0, text_, max_bytes, error_);
            }
        }
    }
    BudgetText(const BudgetText&) = delete;
    BudgetText& operator=(const BudgetText&) = delete;
    ~BudgetText() {
        if (text_ != nullptr) platform::unmap(text_, max_bytes);
    }

    /// Returns the text; "" if the file could not be read.
    std::string_view text() const noexcept { return {text_, bytes_}; }
    /// Returns the system's reason if the file could not be read, or says that it is too large or
    /// no file.
    std::error_code error() const noexcept { return error_; }

private:
    char* text_ = nullptr;
    std::size_t bytes_ = 0;
    std::error_code error_;
};

/// The budgets of a file, by what they limit and by name.
class BudgetTable {
public:
    /// Adds the entries of a text. Calls `report(line_number, problem)` for each bad line, which is
    /// ignored.
    template <class Report>
    void add(std::string_view text, Report report) noexcept {
        unsigned line_of_process = 0;
        for (unsigned number = 1; !text.empty(); ++number) {
            const std::string_view line = text.substr(0, text.find('\n'));
            text.remove_prefix(line.size() == text.size() ? line.size() : line.size() + 1);
            const auto parsed = parse_budget_line(line);
            if (const auto* const problem = std::get_if<BudgetProblem>(&parsed)) {
                report(number, *problem);
            } else if (const auto* const entry = std::get_if<BudgetEntry>(&parsed)) {
                const char* const expected = add(*entry);
                if (expected != nullptr) report(number, BudgetProblem{line, expected});
                if (entry->subject == BudgetSubject::process) line_of_process = number;
            }
        }
        if (count_ == 1 && line_of_process != 0) {
            report(line_of_process, BudgetProblem{"process", "pools or scopes that it limits"});
        }
    }
    /// Opens a budget for each entry, that of the process above all others.
    void open() noexcept;
    /// Returns nullptr if there is no such budget.
    detail::BudgetNode* find(BudgetSubject subject, std::string_view name) const noexcept {
        const Named* const found = entry_of(subject, name);
        return found == nullptr ? nullptr : found->node;
    }

private:
    struct Named {
        BudgetSubject subject;
        char name[48];
        BudgetLimits limits;
        detail::BudgetNode* node;
    };

    const Named* entry_of(BudgetSubject subject, std::string_view name) const noexcept {
        const auto* const end = entries_.data() + count_;
        const auto* const found = std::find_if(entries_.data(), end, [&](const Named& one) {
            return one.subject == subject && one.name == name;
        });
        return found == end ? nullptr : found;
    }
    /// Returns what is wrong with the entry, or adds it and returns nullptr.
    const char* add(const BudgetEntry& entry) noexcept {
        if (entry_of(entry.subject, entry.name) != nullptr) return "each pool and scope once";
        if (count_ == entries_.size()) return "at most 64 pools and scopes";
        Named& added = entries_[count_++];
        added = {.subject = entry.subject, .name = {}, .limits = entry.limits, .node = nullptr};
        std::ranges::copy(entry.name, added.name);
        return nullptr;
    }

    std::array<Named, 64> entries_ = {};
    std::size_t count_ = 0;
};

}  // namespace tensorpool::limits
