#pragma once

#include <array>
#include <string_view>
#include <system_error>
#include <variant>

#include <tensorpool/budget.hpp>

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

/// Parses a line; monostate stands for an empty one or a comment. Allocates nothing.
std::variant<std::monostate, BudgetEntry, BudgetProblem> parse_budget_line(
    std::string_view line) noexcept;

/// The text of a file of budgets. Reading it takes no memory from malloc, which this library may
/// serve.
class BudgetText {
public:
    static constexpr std::size_t max_bytes = std::size_t{64} << 10;

    explicit BudgetText(const char* path);
    BudgetText(const BudgetText&) = delete;
    BudgetText& operator=(const BudgetText&) = delete;
    ~BudgetText();

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
    void add(std::string_view text, Report report) noexcept;
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

    const Named* entry_of(BudgetSubject subject, std::string_view name) const noexcept;
    /// Returns what is wrong with the entry, or adds it and returns nullptr.
    const char* add(const BudgetEntry& entry) noexcept;

    std::array<Named, 64> entries_ = {};
    std::size_t count_ = 0;
};

template <class Report>
void BudgetTable::add(std::string_view text, Report report) noexcept {
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

}  // namespace tensorpool::limits
