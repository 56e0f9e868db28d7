#include "record/outcome.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/printable.hpp"

namespace tensorpool::command::record {
namespace {

std::string what_is_missing(const Outcome& outcome) {
    std::string text;
    if (outcome.dropped != 0) {
        text += fmt::format(
            "\n{} calls are missing, because the program made them faster than they could be "
            "written; more idle processors reduce the loss",
            format_count(static_cast<double>(outcome.dropped)));
    }
    if (outcome.threads_left_out != 0) {
        text += fmt::format(
            "\n{} times a thread found none of the 512 rings free; its calls are missing until "
            "another thread ended",
            outcome.threads_left_out);
    }
    if (outcome.names_left_out != 0) {
        text += fmt::format("\n{} pools, arenas and scopes beyond the first 1,024 have no name",
                            outcome.names_left_out);
    }
    return text;
}

}  // namespace

ExitCode exit_code_of(const Outcome& outcome) {
    if (!outcome.problem.empty()) return finding;
    if (outcome.has_begun) return success;
    return outcome.process_ended ? target_gone : finding;
}

std::string to_text(const Outcome& outcome, Sizes sizes) {
    return fmt::format(
        "{} entries in {:.1f} s, beginning {:.0f} ms after the request; {} in {}{}{}",
        format_count(static_cast<double>(outcome.entries)), outcome.seconds,
        outcome.begun_after * 1e3, format_size(outcome.bytes, sizes), printable(outcome.path),
        outcome.process_ended ? fmt::format("; process {} has ended", outcome.process) : "",
        what_is_missing(outcome));
}

std::string to_json(const Outcome& outcome) {
    return nlohmann::ordered_json{
        {"process", outcome.process},
        {"file", printable(outcome.path)},
        {"begun", outcome.has_begun},
        {"begun_after_seconds", outcome.begun_after},
        {"seconds", outcome.seconds},
        {"process_ended", outcome.process_ended},
        {"entries", outcome.entries},
        {"dropped", outcome.dropped},
        {"bytes", outcome.bytes},
        {"threads_left_out", outcome.threads_left_out},
        {"names_left_out", outcome.names_left_out},
        {"problem", outcome.problem},
    }
        .dump();
}

std::string complaint_of(const Outcome& outcome) {
    if (!outcome.problem.empty()) {
        return fmt::format(
            "recording ended early: {} cannot be written further: {}; its contents are readable; "
            "make room, or write to another disk with -o",
            printable(outcome.path), printable(outcome.problem));
    }
    if (outcome.has_begun) return "";
    if (outcome.process_ended) {
        return fmt::format(
            "process {} ended before it noticed the request to record; to record a program from "
            "its first call on, start it with `tensorpool run --trace FILE`",
            outcome.process);
    }
    return fmt::format(
        "process {} has not begun to record: none of its threads took a slow path of a pool, for "
        "example to allocate a large block; record for longer, or while the process works",
        outcome.process);
}

}  // namespace tensorpool::command::record
