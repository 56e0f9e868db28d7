#include "plan/buffers.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/html.hpp"
#include "common/printable.hpp"

namespace tensorpool::command::planning {
namespace {

std::string line(std::string_view name, std::string_view value, const std::string& note = "") {
    return fmt::format("\n{:<12} {:>12}{}{}", name, value, note.empty() ? "" : "  ", note);
}

std::string how_good(const Outcome& outcome) {
    const MemoryPlan& plan = outcome.plan;
    std::string text = gap_text(plan.peak_bytes, plan.lower_bound_bytes) + " above the lower bound";
    if (outcome.checked) return text;
    return text + (plan.optimal ? "; proven optimal" : "; a smaller plan may exist");
}

std::string how_it_fits(const Outcome& outcome, Sizes sizes) {
    const std::uint64_t peak = outcome.plan.peak_bytes;
    const std::uint64_t capacity = outcome.capacity_bytes;
    if (peak <= capacity) {
        return fmt::format("the plan fits and leaves {}", format_size(capacity - peak, sizes));
    }
    return fmt::format("the plan does not fit: {} more are needed{}",
                       format_size(peak - capacity, sizes),
                       outcome.plan.lower_bound_bytes > capacity || outcome.plan.optimal
                           ? ", and no other plan fits"
                           : "");
}

}  // namespace

double gap_of(const MemoryPlan& plan) noexcept {
    if (plan.lower_bound_bytes == 0) return 0;
    return static_cast<double>(plan.peak_bytes - plan.lower_bound_bytes) /
           static_cast<double>(plan.lower_bound_bytes);
}

std::string report_text(const Outcome& outcome, Sizes sizes) {
    const MemoryPlan& plan = outcome.plan;
    std::string text = printable(outcome.file);
    if (!outcome.origin.empty()) text += ": " + outcome.origin;
    text += line("buffers", with_commas(outcome.buffers),
                 outcome.checked ? "the offsets are valid: no buffers alive at once overlap" : "");
    text += line("lower bound", format_size(plan.lower_bound_bytes, sizes),
                 "maximum bytes alive at once");
    text += line("peak", format_size(plan.peak_bytes, sizes), how_good(outcome));
    if (outcome.capacity_bytes != 0) {
        text += line("capacity", format_size(outcome.capacity_bytes, sizes),
                     how_it_fits(outcome, sizes));
    }
    if (outcome.checked) return text;
    text += line("method", to_string(plan.method));
    return text + line("time", format_ns(static_cast<std::uint64_t>(outcome.seconds * 1e9)));
}

std::string report_json(const Outcome& outcome) {
    const MemoryPlan& plan = outcome.plan;
    nlohmann::ordered_json json = {
        {"file", outcome.file},          {"origin", outcome.origin},
        {"buffers", outcome.buffers},    {"lower_bound_bytes", plan.lower_bound_bytes},
        {"peak_bytes", plan.peak_bytes}, {"gap", gap_of(plan)}};
    if (outcome.checked) {
        json["holds"] = true;
    } else {
        json.update({{"method", to_string(plan.method)},
                     {"optimal", plan.optimal},
                     {"seconds", outcome.seconds}});
    }
    if (outcome.capacity_bytes != 0) {
        json["capacity_bytes"] = outcome.capacity_bytes;
        json["fits"] = fits(outcome);
    }
    return json_line(json);
}

}  // namespace tensorpool::command::planning
