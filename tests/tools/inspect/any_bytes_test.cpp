// Any file is either reported, or rejected with an error of the trace reader.

#include <gtest/gtest.h>

#include <random>

#include "formats/trace/trace_file.hpp"
#include "inspect/analysis.hpp"
#include "tools/trace/made_trace.hpp"

namespace tensorpool::command::inspect {
namespace {

using trace::testing::entry;
using trace::testing::frames_entry;
using trace::testing::MadeTrace;
using trace::testing::thread_entry;
using enum TraceAction;

/// Random entries over a few addresses, so that they interact.
std::vector<TraceEntry> any_entries(std::mt19937& random) {
    std::vector<TraceEntry> entries = {thread_entry(70)};
    std::uint64_t cycles = 1000;
    for (int i = 0; i < 200; ++i) {
        const auto action = static_cast<TraceAction>(random() % 17);
        if (action == thread || action == frames || action == none) continue;
        const std::uint64_t address =
            random() % 50 == 0 ? UINT64_MAX - random() % 5000 : 0x10000 + random() % 8 * 0x800;
        const std::uint64_t bytes = random() % 50 == 0 ? UINT64_MAX : random() % 5000;
        entries.push_back(entry(action, cycles += random() % 9, address, bytes,
                                static_cast<std::uint32_t>(random() % 7), random() % 64));
        if (action == allocate) {
            entries.push_back(frames_entry({random() % 0x10000, std::uint64_t{1} << 48 | 5}, true));
        }
    }
    return entries;
}

MadeTrace any_trace(std::mt19937& random) {
    MadeTrace trace;
    trace.process();
    for (std::uint64_t source = 1; source < 6; ++source) {
        trace.name(source, static_cast<TraceSource>(source % 4 + 1), "<name>");
    }
    trace.module(1, "/nowhere");
    trace.entries(any_entries(random));
    if (random() % 2 == 0) trace.end();
    return trace;
}

void tell_all(std::span<const std::byte> bytes) {
    try {
        const Recording recording = trace::read_recording(bytes, "any");
        if (recording.calls.empty()) return;
        const Analysis analysis = analyse(recording, 5);
        EXPECT_FALSE(text_report(analysis, "any", Sizes::iec, 5).empty());
        EXPECT_FALSE(json_report(analysis).empty());
        EXPECT_FALSE(html_report(analysis, "any", Sizes::iec, 5).empty());
    } catch (const trace::TraceError&) {
        // An error is a valid result too.
    }
}

TEST(AnyBytes, CallsInAnyOrderAreReported) {
    std::mt19937 random(1);
    for (int i = 0; i < 100; ++i) tell_all(any_trace(random).bytes());
}

TEST(AnyBytes, DamagedFilesAreReportedOrRejected) {
    std::mt19937 random(2);
    for (int i = 0; i < 300; ++i) {
        MadeTrace trace = any_trace(random);
        for (int k = 0; k < 3; ++k) {
            trace.raw()[random() % trace.raw().size()] = static_cast<std::byte>(random());
        }
        tell_all(trace.bytes());
    }
}

TEST(AnyBytes, TruncatedFilesAreReportedUpToTheCut) {
    std::mt19937 random(3);
    const MadeTrace trace = any_trace(random);
    for (std::size_t bytes = 0; bytes < trace.bytes().size(); bytes += 97) {
        tell_all(trace.bytes().first(bytes));
    }
}

}  // namespace
}  // namespace tensorpool::command::inspect
