#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/printable.hpp"
#include "common/settings.hpp"
#include "replay/plan_compiler.hpp"

namespace tensorpool::command::replay {
namespace {

/// Returns whether the call allocates memory that can be replayed, which device memory cannot.
bool allocates(const trace::Recording& recording, const trace::Call& call) {
    if (recording.sources[call.source].kind == TraceSource::device) return false;
    return call.action == TraceAction::allocate || call.action == TraceAction::arena_allocate ||
           call.action == TraceAction::scratch_allocate;
}

std::vector<std::uint64_t> allocated_by(const trace::Recording& recording) {
    std::vector<std::uint64_t> bytes(recording.processes.size());
    for (const trace::Call& call : recording.calls) {
        // One is added so that allocations of 0 bytes count too.
        if (!allocates(recording, call)) continue;
        bytes[recording.threads[call.thread].process] += call.bytes + 1;
    }
    return bytes;
}

std::string numbers_of(const trace::Recording& recording) {
    std::string text;
    for (const trace::RecordedProcess& process : recording.processes) {
        text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", process.number,
                            printable(process.name));
    }
    return text;
}

}  // namespace

std::uint32_t choose_process(const trace::Recording& recording, std::uint64_t number) {
    const std::vector<std::uint64_t> bytes = allocated_by(recording);
    const std::size_t none = bytes.size();
    std::size_t best = none;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (number != 0 && recording.processes[i].number != number) continue;
        if (best == none || bytes[i] > bytes[best]) best = i;
    }
    if (best == none && number != 0) {
        throw CommandError(wrong_usage, fmt::format("the trace has no process {}; it has {}",
                                                    number, numbers_of(recording)));
    }
    if (best == none || bytes[best] == 0) {
        throw CommandError(finding, "the trace has no allocation: there is nothing to replay");
    }
    return static_cast<std::uint32_t>(best);
}

}  // namespace tensorpool::command::replay
