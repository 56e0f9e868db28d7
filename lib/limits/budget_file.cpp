#include "limits/budget_file.hpp"

#include "limits/budget_node.hpp"
#include "platform/environment.hpp"
#include "platform/files/input_file.hpp"

namespace tensorpool::limits {
namespace {

constexpr std::string_view blanks = " \t\r";
constexpr std::size_t max_limit = std::size_t{1} << 60;

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

std::optional<std::size_t> parse_limit(std::string_view text) noexcept {
    const std::optional<std::size_t> bytes = platform::parse_bytes(text);
    return bytes && *bytes != 0 && *bytes <= max_limit ? bytes : std::nullopt;
}

// Returns what was expected if the field is no limit or its limit was set before.
const char* set_limit(std::string_view field, BudgetLimits& limits) noexcept {
    const bool is_hard = field.starts_with("hard=");
    if (!is_hard && !field.starts_with("soft=")) return "hard=SIZE or soft=SIZE";
    std::size_t& limit = is_hard ? limits.hard : limits.soft;
    if (limit != 0) return "each limit once";
    const std::optional<std::size_t> bytes = parse_limit(field.substr(5));
    if (!bytes) return "a size above 0 such as 512MiB or 2GiB";
    limit = *bytes;
    return nullptr;
}

// Returns what was expected of the line if the entry is incomplete.
const char* missing(const BudgetEntry& entry) noexcept {
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

}  // namespace

// A name may have blanks in it, but no '=', so a misspelt limit does not become a part of it.
std::variant<std::monostate, BudgetEntry, BudgetProblem> parse_budget_line(
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

BudgetText::BudgetText(const char* path) {
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

BudgetText::~BudgetText() {
    if (text_ != nullptr) platform::unmap(text_, max_bytes);
}

const BudgetTable::Named* BudgetTable::entry_of(BudgetSubject subject,
                                                std::string_view name) const noexcept {
    const auto* const end = entries_.data() + count_;
    const auto* const found = std::find_if(entries_.data(), end, [&](const Named& one) {
        return one.subject == subject && one.name == name;
    });
    return found == end ? nullptr : found;
}

const char* BudgetTable::add(const BudgetEntry& entry) noexcept {
    if (entry_of(entry.subject, entry.name) != nullptr) return "each pool and scope once";
    if (count_ == entries_.size()) return "at most 64 pools and scopes";
    Named& added = entries_[count_++];
    added = {.subject = entry.subject, .name = {}, .limits = entry.limits, .node = nullptr};
    std::ranges::copy(entry.name, added.name);
    return nullptr;
}

void BudgetTable::open() noexcept {
    using detail::BudgetNode;
    const auto is_process = [](const Named& one) { return one.subject == BudgetSubject::process; };
    std::partition(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(count_),
                   is_process);
    BudgetNode* const process = count_ != 0 && is_process(entries_[0])
                                    ? entries_[0].node =
                                          BudgetNode::open(nullptr, "process", entries_[0].limits)
                                    : nullptr;
    for (std::size_t i = 0; i != count_; ++i) {
        Named& one = entries_[i];
        if (!is_process(one)) one.node = BudgetNode::open(process, one.name, one.limits);
    }
}

}  // namespace tensorpool::limits
