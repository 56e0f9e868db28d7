#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "formats/trace/recording.hpp"
#include "formats/trace/trace_file.hpp"
#include "made_trace.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::trace {
namespace {

using testing::entry;
using testing::frames_entry;
using testing::MadeTrace;
using testing::thread_entry;
using enum TraceAction;

Recording read(const MadeTrace& trace) {
    return read_recording(trace.bytes(), "made-up.tpt");
}

std::string problem_of(std::span<const std::byte> bytes) {
    try {
        read_recording(bytes, "made-up.tpt");
        return {};
    } catch (const TraceError& error) {
        return error.what();
    }
}

std::vector<std::uint64_t> addresses(const Recording& recording) {
    std::vector<std::uint64_t> found;
    for (const Call& call : recording.calls) found.push_back(call.address);
    return found;
}

TEST(ReadRecording, ReadsCallsWithThreadTimeAndSource) {
    MadeTrace trace;
    trace.process().name(5, TraceSource::pool, "weights");
    trace.entries({thread_entry(70), entry(allocate, 2000, 0x1000, 100, 5, 6)}).end();
    const Recording recording = read(trace);
    ASSERT_EQ(recording.processes.size(), 1U);
    EXPECT_EQ(recording.processes[0].number, 7U);
    EXPECT_EQ(recording.processes[0].name, "program7");
    EXPECT_EQ(recording.processes[0].page_bytes, 4096U);
    EXPECT_TRUE(recording.processes[0].from_start);
    EXPECT_TRUE(recording.processes[0].ended);
    EXPECT_EQ(recording.begun_unix_ns, 5'000'000'000U);
    ASSERT_EQ(recording.calls.size(), 1U);
    const Call& call = recording.calls[0];
    EXPECT_EQ(call.action, allocate);
    EXPECT_EQ(call.time_ns, 10'000U);  // a thousand cycles of 10 ns
    EXPECT_EQ(call.address, 0x1000U);
    EXPECT_EQ(call.bytes, 100U);
    EXPECT_EQ(call.alignment_log2, 6);
    EXPECT_EQ(call.stack, 0U);
    EXPECT_EQ(recording.threads.at(call.thread).number, 70U);
    EXPECT_EQ(recording.sources.at(call.source).name, "weights");
    EXPECT_EQ(recording.sources.at(call.source).kind, TraceSource::pool);
    EXPECT_EQ(recording.sources.at(0).name, "?");
    EXPECT_EQ(recording.modules.at(0).path, "?");
    EXPECT_EQ(recording.stacks.size(), 1U);
}

TEST(ReadRecording, MergesRingsByTimeAndKeepsTheOrderOfEach) {
    MadeTrace trace;
    trace.process();
    trace.entries({thread_entry(1), entry(allocate, 2000, 1), entry(allocate, 5000, 4)}, 0);
    trace.entries({thread_entry(2), entry(allocate, 3000, 2), entry(allocate, 4000, 3)}, 1);
    // As for a thread that moved to a processor with a lagging cycle counter.
    trace.entries({entry(allocate, 4500, 5), entry(allocate, 9000, 8)}, 0);
    trace.entries({entry(allocate, 6000, 6), entry(allocate, 7000, 7)}, 1);
    const Recording recording = read(trace);
    EXPECT_EQ(addresses(recording), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
    for (std::size_t i = 1; i < recording.calls.size(); ++i) {
        EXPECT_LE(recording.calls[i - 1].time_ns, recording.calls[i].time_ns) << i;
    }
    EXPECT_EQ(recording.threads.size(), 2U);
    EXPECT_EQ(recording.threads[recording.calls[1].thread].number, 2U);
}

TEST(ReadRecording, MergesManyRingsCompletely) {
    MadeTrace trace;
    trace.process();
    constexpr std::uint32_t rings = 37;
    constexpr std::uint64_t calls = 100;
    for (std::uint64_t piece = 0; piece < 2; ++piece) {
        for (std::uint32_t ring = 0; ring < rings; ++ring) {
            std::vector<TraceEntry> entries;
            if (piece == 0) entries.push_back(thread_entry(ring));
            for (std::uint64_t i = piece * calls; i < (piece + 1) * calls; ++i) {
                const std::uint64_t number = i * rings + ring;
                entries.push_back(entry(allocate, 2000 + number, number));
            }
            trace.entries(entries, ring);
        }
    }
    const Recording recording = read(trace);
    ASSERT_EQ(recording.calls.size(), 2 * calls * rings);
    for (std::size_t i = 0; i < recording.calls.size(); ++i) {
        ASSERT_EQ(recording.calls[i].address, i);
    }
}

TEST(ReadRecording, MergesProcessesAndSeparatesTheirNumbers) {
    MadeTrace trace;
    trace.process(8, 3000).process(7, 1000);
    trace.name(1, TraceSource::pool, "of 7", 7).name(1, TraceSource::arena, "of 8", 8);
    trace.entries({thread_entry(5), entry(allocate, 4000, 1)}, 0, 8);
    trace.entries({thread_entry(5), entry(allocate, 2000, 2)}, 0, 7);
    trace.end(8);
    const Recording recording = read(trace);
    EXPECT_EQ(addresses(recording), (std::vector<std::uint64_t>{2, 1}));
    EXPECT_EQ(recording.begun_unix_ns, 5'000'000'000U);  // of the process that began first
    EXPECT_EQ(recording.calls[0].time_ns, 10'000U);
    EXPECT_EQ(recording.sources.at(recording.calls[0].source).name, "of 7");
    EXPECT_EQ(recording.sources.at(recording.calls[1].source).name, "of 8");
    EXPECT_EQ(recording.threads.at(recording.calls[1].thread).process, 0U);
    EXPECT_EQ(recording.threads.at(recording.calls[0].thread).process, 1U);
    EXPECT_TRUE(recording.processes[0].ended);
    EXPECT_FALSE(recording.processes[1].ended);
}

TEST(ReadRecording, AReusedProcessNumberIsAnotherProcess) {
    MadeTrace trace;
    trace.process(7, 1000).name(1, TraceSource::pool, "first");
    trace.entries({thread_entry(1), entry(allocate, 2000, 1)}).end();
    trace.process(7, 5000).name(1, TraceSource::pool, "second");
    trace.entries({thread_entry(1), entry(allocate, 6000, 2)});
    const Recording recording = read(trace);
    ASSERT_EQ(recording.processes.size(), 2U);
    EXPECT_TRUE(recording.processes[0].ended);
    EXPECT_FALSE(recording.processes[1].ended);
    EXPECT_EQ(recording.sources.at(recording.calls.at(0).source).name, "first");
    EXPECT_EQ(recording.sources.at(recording.calls.at(1).source).name, "second");
    EXPECT_NE(recording.calls[0].thread, recording.calls[1].thread);
}

TEST(ReadRecording, ARingPassesFromThreadToThread) {
    MadeTrace trace;
    trace.process();
    trace.entries({thread_entry(1), entry(allocate, 2000, 1), thread_entry(2, 3000),
                   entry(allocate, 4000, 2)});
    trace.entries({entry(allocate, 5000, 3), thread_entry(1, 6000), entry(allocate, 7000, 4)});
    const Recording recording = read(trace);
    std::vector<std::uint64_t> threads;
    for (const Call& call : recording.calls) {
        threads.push_back(recording.threads[call.thread].number);
    }
    EXPECT_EQ(threads, (std::vector<std::uint64_t>{1, 2, 2, 1}));
    EXPECT_EQ(recording.threads.size(), 2U);
}

// As after a recorder was killed, and another one continues to read its rings.
TEST(ReadRecording, RingsWithoutAThreadGetThreadsOfTheirOwn) {
    MadeTrace trace;
    trace.process();
    trace.entries({entry(allocate, 2000, 1), entry(allocate, 4000, 3)}, 0);
    trace.entries({entry(allocate, 3000, 2), thread_entry(9), entry(allocate, 5000, 4)}, 1);
    const Recording recording = read(trace);
    ASSERT_EQ(recording.calls.size(), 4U);
    ASSERT_EQ(recording.threads.size(), 3U);
    EXPECT_EQ(recording.calls[0].thread, recording.calls[2].thread);
    EXPECT_NE(recording.calls[0].thread, recording.calls[1].thread);
    EXPECT_EQ(recording.threads[recording.calls[0].thread].number, 0U);
    EXPECT_EQ(recording.threads[recording.calls[3].thread].number, 9U);
}

constexpr std::uint64_t in_module(std::uint64_t module, std::uint64_t offset) {
    return module << 48 | offset;
}

TEST(ReadRecording, FramesBecomeUniqueStacks) {
    MadeTrace trace;
    trace.process().module(1, "/bin/program").module(2, "/lib/libc.so");
    const auto stack = [](std::vector<TraceEntry>& to) {
        to.push_back(frames_entry({in_module(1, 10), in_module(2, 20), in_module(1, 30)}, false));
        to.push_back(frames_entry({0x7000}, true));
    };
    std::vector<TraceEntry> entries{thread_entry(1), entry(allocate, 2000, 1)};
    stack(entries);
    entries.push_back(entry(allocate, 3000, 2));
    entries.push_back(entry(allocate, 4000, 3));
    stack(entries);
    entries.push_back(entry(allocate, 5000, 4));
    entries.push_back(frames_entry({in_module(2, 21)}, true));
    trace.entries(entries);
    const Recording recording = read(trace);
    ASSERT_EQ(recording.calls.size(), 4U);
    ASSERT_EQ(recording.stacks.size(), 3U);
    EXPECT_TRUE(recording.stacks[0].empty());
    EXPECT_NE(recording.calls[0].stack, 0U);
    EXPECT_EQ(recording.calls[1].stack, 0U);
    EXPECT_EQ(recording.calls[2].stack, recording.calls[0].stack);
    const auto& frames = recording.stacks.at(recording.calls[0].stack);
    ASSERT_EQ(frames.size(), 4U);
    EXPECT_EQ(recording.modules.at(frames[0].module).path, "/bin/program");
    EXPECT_EQ(frames[0].offset, 10U);
    EXPECT_EQ(recording.modules.at(frames[1].module).path, "/lib/libc.so");
    EXPECT_EQ(frames[3], (RecordedFrame{.module = 0, .offset = 0x7000}));
    EXPECT_EQ(recording.stacks.at(recording.calls[3].stack).size(), 1U);
}

TEST(ReadRecording, AStackMayContinueInTheNextChunk) {
    MadeTrace trace;
    trace.process().module(1, "/bin/program");
    trace.entries({thread_entry(1), entry(allocate, 2000, 1)});
    trace.entries({frames_entry({in_module(1, 1), in_module(1, 2), in_module(1, 3)}, false)});
    trace.entries({frames_entry({in_module(1, 4)}, true), entry(allocate, 3000, 2)});
    const Recording recording = read(trace);
    ASSERT_EQ(recording.calls.size(), 2U);
    EXPECT_EQ(recording.stacks.at(recording.calls[0].stack).size(), 4U);
    EXPECT_EQ(recording.calls[1].stack, 0U);
}

TEST(ReadRecording, AnIncompleteStackBelongsToThePreviousCall) {
    MadeTrace trace;
    trace.process().module(1, "/bin/program");
    trace.entries({thread_entry(1), entry(allocate, 2000, 1),
                   frames_entry({in_module(1, 1), in_module(1, 2), in_module(1, 3)}, false),
                   entry(allocate, 3000, 2), frames_entry({in_module(1, 4)}, false)});
    const Recording recording = read(trace);
    ASSERT_EQ(recording.calls.size(), 2U);
    EXPECT_EQ(recording.stacks.at(recording.calls[0].stack).size(), 3U);
    EXPECT_EQ(recording.stacks.at(recording.calls[1].stack).size(), 1U);
}

TEST(ReadRecording, UnnamedSourcesAreDistinguished) {
    MadeTrace trace;
    trace.process();
    trace.entries({thread_entry(1), entry(allocate, 2000, 1, 0, 3),
                   entry(arena_allocate, 3000, 2, 0, 4), entry(allocate, 4000, 3, 0, 3),
                   entry(allocate, 5000, 4, 0, 0)});
    const Recording recording = read(trace);
    const auto source = [&](std::size_t call) { return recording.calls.at(call).source; };
    EXPECT_EQ(source(0), source(2));
    EXPECT_NE(source(0), source(1));
    EXPECT_EQ(source(3), 0U);
    EXPECT_EQ(recording.sources.at(source(1)).kind, TraceSource::arena);
    EXPECT_EQ(recording.sources.at(source(1)).number, 4U);
    EXPECT_EQ(recording.sources.at(source(1)).name, "?");
}

TEST(ReadRecording, AStreamAppliesToTheNextAllocationOfItsRing) {
    MadeTrace trace;
    trace.process().name(5, TraceSource::device, "weights");
    trace.entries({thread_entry(70), entry(stream, 2000, 0x7f40, 0, 5),
                   entry(allocate, 2000, 1, 10, 5), entry(allocate, 2001, 2, 10, 5),
                   entry(stream, 2002, 0x7f50, 0, 5), entry(deallocate, 2003, 1, 10, 5),
                   entry(allocate, 2004, 3, 10, 5)});
    const Recording recording = read(trace);
    EXPECT_EQ(addresses(recording), (std::vector<std::uint64_t>{1, 2, 1, 3}));
    EXPECT_EQ(recording.sources.at(recording.calls[0].source).kind, TraceSource::device);
    EXPECT_EQ(recording.streams, (std::vector<std::uint64_t>{0, 0x7f40, 0x7f50}));
    EXPECT_EQ(recording.calls[0].stream, 1U);
    EXPECT_EQ(recording.calls[1].stream, 0U);
    EXPECT_EQ(recording.calls[2].stream, 0U);
    EXPECT_EQ(recording.calls[3].stream, 0U) << "not the next allocation";
}

TEST(ReadRecording, DeviceActionsIdentifyADevice) {
    MadeTrace trace;
    trace.process().entries({thread_entry(70), entry(slab, 2000, 0x1000, 4096, 5),
                             entry(defer, 2001, 0x1000, 256, 6), entry(stream, 2002, 1, 0, 7),
                             entry(slab_end, 2003, 0x1000, 4096, 5)});
    const Recording recording = read(trace);
    ASSERT_EQ(recording.calls.size(), 3U);
    for (std::size_t source = 1; source < recording.sources.size(); ++source) {
        EXPECT_EQ(recording.sources[source].kind, TraceSource::device) << source;
    }
    EXPECT_EQ(recording.sources.size(), 4U);
}

TEST(ReadRecording, CountsDroppedEntries) {
    MadeTrace trace;
    trace.process();
    trace.entries({thread_entry(1)}, 0, 7, 5).entries({thread_entry(1)}, 0, 7, 9);
    trace.entries({thread_entry(2)}, 1, 7, 100);
    EXPECT_EQ(read(trace).processes.at(0).dropped, 109U);
}

TEST(ReadRecording, ATruncatedFileIsReadUpToTheCut) {
    MadeTrace trace;
    trace.process();
    trace.entries({thread_entry(1), entry(allocate, 2000, 1)});
    trace.entries({entry(allocate, 3000, 2)}).end();
    const auto bytes = trace.bytes();
    for (std::size_t size = sizeof(TraceHeader); size <= bytes.size(); ++size) {
        const Recording recording = read_recording(bytes.first(size), "made-up.tpt");
        const auto& at = trace.boundaries();
        const std::size_t calls = size >= at[3] ? 2 : size >= at[2] ? 1 : 0;
        ASSERT_EQ(recording.calls.size(), calls) << size;
        ASSERT_EQ(recording.cut_bytes == 0, std::find(at.begin(), at.end(), size) != at.end());
    }
}

using Held = std::vector<std::array<std::uint64_t, 3>>;

Held held(const Recording& recording) {
    Held found;
    for (const CapacityChange& change : recording.capacities) {
        found.push_back({change.time_ns, change.source, change.bytes});
    }
    return found;
}

TEST(ReadRecording, ReadsCapacityChangesInOrderOfTime) {
    MadeTrace trace;
    trace.process().name(5, TraceSource::pool, "weights").name(6, TraceSource::arena, "batch");
    trace.entries({thread_entry(70), entry(capacity, 1100, 0, 4096, 5),
                   entry(allocate, 1300, 0x1000, 100, 5), entry(capacity, 1400, 0, 0, 5)});
    trace.entries({thread_entry(71), entry(capacity, 1200, 0, 8192, 6)}, 1).end();
    const Recording recording = read(trace);
    EXPECT_EQ(held(recording), (Held{{1000, 1, 4096}, {2000, 2, 8192}, {4000, 1, 0}}));
    EXPECT_EQ(addresses(recording), (std::vector<std::uint64_t>{0x1000}));
}

TEST(ReadRecording, ADestroyedSourceHasNoCapacityLater) {
    MadeTrace trace;
    trace.process().name(5, TraceSource::pool, "weights").name(6, TraceSource::pool, "silent");
    trace.entries({entry(capacity, 1100, 0, 4096, 5), entry(gone, 1200, 0, 0, 5),
                   entry(gone, 1200, 0, 0, 6)});
    trace.entries({entry(capacity, 1300, 0, 8192, 5)}, 1).end();
    EXPECT_EQ(held(read(trace)), (Held{{1000, 1, 4096}, {2000, 1, 0}}));
}

TEST(ReadRecording, ACapacityDoesNotMakeAnUnnamedArenaAPool) {
    MadeTrace trace;
    trace.process();
    trace.entries({entry(capacity, 1100, 0, 4096, 5), entry(arena_allocate, 1200, 0x1000, 9, 5)});
    EXPECT_EQ(read(trace).sources.at(1).kind, TraceSource::arena);
}

TEST(ReadRecording, UnknownActionsAreSkipped) {
    MadeTrace trace;
    trace.process();
    trace.entries({thread_entry(1), entry(TraceAction{99}, 2000, 1), entry(none, 2000, 1),
                   entry(allocate, 3000, 2)});
    EXPECT_EQ(addresses(read(trace)), (std::vector<std::uint64_t>{2}));
}

TEST(ReadRecording, RejectsInvalidContents) {
    const auto expect = [](const MadeTrace& trace, std::size_t chunk, const std::string& what) {
        const std::string problem = problem_of(trace.bytes());
        const std::string where = "at byte " + std::to_string(trace.boundaries()[chunk]) + ": ";
        EXPECT_NE(problem.find(where), std::string::npos) << problem;
        EXPECT_NE(problem.find(what), std::string::npos) << problem;
    };
    expect(MadeTrace().entries({thread_entry(1)}), 0, "a chunk of process 7; expected a preceding");
    expect(MadeTrace().process().name(1, TraceSource{9}, "x"), 1, "kind 9; expected 1 to 6");
    expect(MadeTrace().process().entries({entry(allocate, 1, 1, 1, 1, 64)}), 1,
           "2^64; expected at most 2^63");
    expect(MadeTrace().process().entries({entry(allocate, 1, 0x1000, UINT64_MAX - 5)}), 1,
           "at 0x1000; expected one that ends within");
    expect(MadeTrace().process().entries({entry(capacity, 1, 0, (1ULL << 57) + 1)}), 1,
           "a capacity of 144115188075855873 B; expected at most 144115188075855872 B");
    TraceProcess process{};
    process.page_bytes = 5;
    MadeTrace pages;
    pages.chunk(TraceChunkKind::process, std::as_bytes(std::span(&process, 1)));
    expect(pages, 0, "pages of 5 B; expected a power of two");
}

TEST(ReadRecording, DetectsFileTypesByTheirBeginning) {
    const std::string text = "\x1b[31m,hello world, this is some text";
    const std::string problem = problem_of(std::as_bytes(std::span(text)));
    EXPECT_NE(problem.find("at byte 0: found a file that begins with \"?[31m,hello"),
              std::string::npos)
        << problem;
    EXPECT_NE(problem.find("TPTRACE"), std::string::npos);
    EXPECT_NE(problem.find("Thread,Time,Action"), std::string::npos);
    EXPECT_NE(problem_of({}).find("found an empty file"), std::string::npos);
}

TEST(ReadRecording, ReadsFiles) {
    const photos::TemporaryFolder folder;
    MadeTrace trace;
    trace.process().entries({thread_entry(1), entry(allocate, 2000, 1)});
    const auto bytes = trace.bytes();
    const std::string path =
        folder.file("a.tpt", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    EXPECT_EQ(read_recording(path).calls.size(), 1U);
    EXPECT_THROW(read_recording(folder.path() / "b.tpt"), CommandError);
}

// Clocks that stop or go back cause neither decreasing times nor a crash.
TEST(ReadRecording, TimesOfBrokenClocksAreValid) {
    for (const std::uint64_t cycles : {std::uint64_t{0}, UINT64_MAX}) {
        MadeTrace trace;
        trace.process(7, cycles == 0 ? 1000 : 2000);
        const std::vector<TraceEntry> entries{thread_entry(1), entry(allocate, 0, 1),
                                              entry(allocate, UINT64_MAX, 2),
                                              entry(allocate, 5, 3)};
        trace.chunk(TraceChunkKind::entries, std::as_bytes(std::span(entries)),
                    [&](TraceChunkHeader& header) {
                        header.cycles = cycles;
                        header.unix_ns = ~cycles;
                    });
        const Recording recording = read(trace);
        ASSERT_EQ(recording.calls.size(), 3U);
        EXPECT_EQ(recording.calls[0].time_ns, 0U);
        EXPECT_LE(recording.calls[1].time_ns, std::uint64_t{1} << 63);
        EXPECT_EQ(recording.calls[2].time_ns, recording.calls[1].time_ns);
    }
}

}  // namespace
}  // namespace tensorpool::command::trace
