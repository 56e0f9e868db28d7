#include <nlohmann/json.hpp>

#include "run/report.hpp"
#include "run/size_text.hpp"

namespace tensorpool::command::run {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const PlannedPart& part, const PartNotes& notes) {
    return {{"name", name_of(part.part)},
            {"put", part.is_put()},
            {"problem", part.problem},
            {"programs", notes.programs},
            {"problems", notes.problems}};
}

Json json_of(const TraceOutput& trace) {
    return {{"path", trace.path()},
            {"entries", trace.writer().entries()},
            {"dropped", trace.writer().dropped()},
            {"written_bytes", trace.writer().written_bytes()},
            {"threads_left_out", trace.threads_left_out()},
            {"problem", trace.writer().problem()}};
}

Json json_of(const Totals& others, std::uint64_t count) {
    return {{"processes", count},
            {"peak_bytes", others.peak_bytes},
            {"allocations", others.allocations},
            {"failures", others.failures}};
}

}  // namespace

std::string to_json(const Report& report) {
    const Results& results = report.results;
    const Outcome& outcome = report.outcome;
    Json parts = Json::array();
    for (const PlannedPart& one : report.parts) {
        parts.push_back(json_of(one, results.notes(one.part)));
    }
    Json run = {{"version", 1},
                {"program", report.arguments.program},
                {"exit_code", outcome.code},
                {"signal", outcome.signal},
                {"user_seconds", outcome.user_seconds},
                {"system_seconds", outcome.system_seconds},
                {"minor_faults", outcome.minor_faults},
                {"peak_resident_bytes", outcome.peak_resident_bytes},
                {"limit_bytes", parse_size(report.arguments.limit).value_or(0)},
                {"parts", parts},
                {"processes", results.processes()},
                {"others", json_of(results.totals_of_others(), results.others())},
                {"problems", results.problems()}};
    if (report.trace != nullptr) run["trace"] = json_of(*report.trace);
    // Arguments may be in any character set, so invalid UTF-8 is replaced.
    std::string text = run.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
    for (const ProcessResult& one : results.largest()) {
        text += tensorpool::to_json(one.snapshot) + '\n';
    }
    return text;
}

}  // namespace tensorpool::command::run
