#include "trim/outcome.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tensorpool::command::trim {

std::string to_text(const Outcome& outcome, Sizes sizes) {
    const auto size = [&](std::uint64_t bytes) { return format_size(bytes, sizes); };
    std::string text =
        fmt::format("process {} released {} after {:.0f} ms: capacity {}, was {}", outcome.process,
                    size(outcome.trimmed_bytes.value_or(0)), outcome.seconds * 1e3,
                    size(outcome.after.capacity_bytes), size(outcome.before.capacity_bytes));
    if (outcome.after.resident_bytes != 0) {
        text += fmt::format("; resident {}, was {}", size(outcome.after.resident_bytes),
                            size(outcome.before.resident_bytes));
    }
    return text;
}

std::string to_json(const Outcome& outcome) {
    nlohmann::ordered_json json = {{"process", outcome.process},
                                   {"answered", outcome.trimmed_bytes.has_value()},
                                   {"seconds", outcome.seconds}};
    json["trimmed_bytes"] = outcome.trimmed_bytes.value_or(0);
    json["capacity_bytes_before"] = outcome.before.capacity_bytes;
    json["capacity_bytes"] = outcome.after.capacity_bytes;
    json["resident_bytes_before"] = outcome.before.resident_bytes;
    json["resident_bytes"] = outcome.after.resident_bytes;
    return json.dump();
}

std::string complaint_of(const Outcome& outcome, Sizes sizes) {
    if (outcome.trimmed_bytes) return "";
    return fmt::format(
        "process {} did not answer within {:.1f} s and holds {}: none of its threads took a slow "
        "path of a pool, for example for a large block; it will answer when one does; with "
        "TENSORPOOL_RETAIN_BACKGROUND=on in its environment, a thread answers at once",
        outcome.process, outcome.seconds, format_size(outcome.after.capacity_bytes, sizes));
}

}  // namespace tensorpool::command::trim
