#include "formats/trace/trace_file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "made_trace.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::trace {
namespace {

using testing::entry;
using testing::MadeTrace;
using testing::thread_entry;
using testing::zstd_frame;

constexpr std::size_t header_bytes = sizeof(TraceHeader);

MadeTrace some_trace() {
    MadeTrace trace;
    trace.process().name(1, TraceSource::pool, "global");
    trace.entries({thread_entry(70), entry(TraceAction::allocate, 2000, 0x1000, 100)});
    trace.compressed();
    trace.entries({entry(TraceAction::deallocate, 3000, 0x1000, 128)}).end();
    return trace;
}

/// Returns the number of chunks read, and the number of bytes of an incomplete chunk at the end.
std::pair<std::size_t, std::uint64_t> read(std::span<const std::byte> bytes) {
    TraceFile file(Input(bytes, "made-up.tpt"));
    std::size_t count = 0;
    for (TraceChunk chunk; file.next(chunk);) ++count;
    return {count, file.cut_bytes()};
}

/// Returns the error message; "" if the file is valid.
std::string problem_of(std::span<const std::byte> bytes) {
    try {
        read(bytes);
        return {};
    } catch (const TraceError& error) {
        EXPECT_EQ(error.code(), finding);
        return error.what();
    }
}

void expect_problem(std::span<const std::byte> bytes, std::uint64_t offset,
                    const std::string& found, const std::string& expected) {
    const std::string problem = problem_of(bytes);
    const std::string where = "made-up.tpt: at byte " + std::to_string(offset) + ": ";
    EXPECT_TRUE(problem.starts_with(where)) << problem << "\nexpected " << where;
    EXPECT_NE(problem.find(found), std::string::npos) << problem << "\nexpected " << found;
    EXPECT_NE(problem.find(expected), std::string::npos) << problem << "\nexpected " << expected;
}

TEST(TraceFile, ReadsRawAndCompressedChunksInTheirOrder) {
    const MadeTrace trace = some_trace();
    TraceFile file(Input(trace.bytes(), "made-up.tpt"));
    TraceChunk chunk;
    std::vector<TraceChunkKind> kinds;
    std::vector<std::uint64_t> cycles;
    while (file.next(chunk)) {
        kinds.push_back(chunk.header.kind);
        EXPECT_EQ(chunk.offset, trace.boundaries()[kinds.size() - 1]);
        if (chunk.header.kind != TraceChunkKind::entries) continue;
        for (const TraceEntry& one : chunk.records<TraceEntry>()) cycles.push_back(one.cycles);
    }
    using enum TraceChunkKind;
    EXPECT_EQ(kinds, (std::vector{process, names, entries, entries, end}));
    EXPECT_EQ(cycles, (std::vector<std::uint64_t>{1000, 2000, 3000}));
    EXPECT_EQ(file.cut_bytes(), 0U);
    EXPECT_FALSE(file.next(chunk));
}

TEST(TraceFile, ReadsAFileAsItReadsBytes) {
    const photos::TemporaryFolder folder;
    const MadeTrace trace = some_trace();
    TraceFile file{Input(folder.file(
        "a.tpt", {reinterpret_cast<const char*>(trace.bytes().data()), trace.bytes().size()}))};
    std::size_t count = 0;
    for (TraceChunk chunk; file.next(chunk);) ++count;
    EXPECT_EQ(count, 5U);
}

TEST(TraceFile, ATruncatedFileIsReadableUpToItsLastCompleteChunk) {
    const MadeTrace trace = some_trace();
    const auto all = trace.bytes();
    std::size_t whole = 0;
    for (std::size_t size = header_bytes; size <= all.size(); ++size) {
        if (whole + 1 < trace.boundaries().size() && size == trace.boundaries()[whole + 1]) ++whole;
        const auto [count, cut] = read(all.first(size));
        ASSERT_EQ(count, whole) << size;
        ASSERT_EQ(cut, size - trace.boundaries()[whole]) << size;
    }
    EXPECT_EQ(whole, 5U);
}

TEST(TraceFile, AFileTruncatedInItsHeaderIsNotATrace) {
    const MadeTrace trace = some_trace();
    for (std::size_t size = 0; size < header_bytes; ++size) {
        expect_problem(trace.bytes().first(size), size, "the end of the file", "32 B");
    }
}

TEST(TraceFile, RejectsOtherBeginnings) {
    MadeTrace trace = some_trace();
    trace.raw()[0] = std::byte{'X'};
    expect_problem(trace.bytes(), 0, "not a trace", "TPTRACE");
    trace = some_trace();
    trace.raw()[8] = std::byte{9};
    expect_problem(trace.bytes(), 0, "version 9", "version 1");
    trace = some_trace();
    trace.raw()[12] = std::byte{8};
    expect_problem(trace.bytes(), 0, "header of 8 B", "32 to 4096 B");
}

TEST(TraceFile, DetectsAnyChangedBitOfAChunkHeader) {
    const MadeTrace trace = some_trace();
    const std::size_t begin = trace.boundaries()[2];
    for (std::size_t bit = 0; bit < sizeof(TraceChunkHeader) * 8; ++bit) {
        MadeTrace damaged = trace;
        damaged.raw()[begin + bit / 8] ^= std::byte{1} << bit % 8;
        expect_problem(damaged.bytes(), begin, "found", "expected");
    }
}

/// Adds one chunk after that of the process, with an edited header and a correct check.
MadeTrace with(TraceChunkKind kind, std::size_t bytes, const MadeTrace::Edit& edit = {}) {
    MadeTrace trace;
    trace.process();
    const std::vector<std::byte> payload(bytes);
    trace.chunk(kind, payload, edit);
    return trace;
}

TEST(TraceFile, RejectsInvalidSizes) {
    const std::size_t second = header_bytes + sizeof(TraceChunkHeader) + sizeof(TraceProcess);
    using enum TraceChunkKind;
    const auto refuse = [&](const MadeTrace& trace, const char* found, const char* expected) {
        expect_problem(trace.bytes(), second, found, expected);
    };
    refuse(with(entries, 31), "31 B of records", "multiple of 32 B");
    refuse(with(names, 65), "65 B of records", "multiple of 64 B");
    refuse(with(modules, 255), "255 B of records", "multiple of 256 B");
    refuse(with(process, 0), "0 B about a process", "128 B");
    refuse(with(process, 256), "256 B about a process", "128 B");
    refuse(with(end, 1), "1 B at the end", "none");
    refuse(with(entries, 32, [](auto& header) { header.bytes = 64; }), "raw payload of 32 B",
           "64 B");
    const auto huge = [](auto& header) { header.stored_bytes = header.bytes = UINT64_MAX - 31; };
    refuse(with(entries, 32, huge), "18446744073709551584 B", "at most 67108864 B");
    const auto expands = [](auto& header) {
        header.compression = TraceCompression::zstd;
        header.bytes = std::uint64_t{1} << 40;
    };
    refuse(with(entries, 32, expands), "1099511627776 B when decompressed", "at most 67108864 B");
    const auto unknown = [](auto& header) { header.compression = TraceCompression{2}; };
    refuse(with(entries, 32, unknown), "compression 2", "0 (none) or 1 (zstd)");
}

TEST(TraceFile, SkipsUnknownKinds) {
    MadeTrace trace = with(TraceChunkKind{77}, 5);
    trace.end();
    EXPECT_EQ(read(trace.bytes()).first, 2U);
}

/// Makes a chunk of entries with any frame, whose header states `bytes`.
MadeTrace with_frame(std::span<const std::byte> frame, std::uint64_t bytes) {
    MadeTrace trace;
    trace.chunk(TraceChunkKind::entries, frame, [&](TraceChunkHeader& header) {
        header.compression = TraceCompression::zstd;
        header.bytes = bytes;
    });
    return trace;
}

TEST(TraceFile, RejectsFramesOfWrongSizes) {
    const std::vector<std::byte> payload(96);
    const std::size_t begin = header_bytes + sizeof(TraceChunkHeader);
    std::vector<std::byte> frame = zstd_frame(payload);
    EXPECT_EQ(problem_of(with_frame(frame, 96).bytes()), "");
    const auto refuse = [&](std::span<const std::byte> bytes, std::uint64_t expected) {
        expect_problem(with_frame(bytes, expected).bytes(), begin, "a damaged zstd frame",
                       "expected one of " + std::to_string(expected) + " B when decompressed");
    };
    refuse(frame, 64);
    refuse(frame, 1 << 26);
    refuse(payload, 96);
    std::vector<std::byte> two = frame;
    two.insert(two.end(), frame.begin(), frame.end());
    refuse(two, 96);
    refuse(std::span(frame).first(frame.size() - 1), 96);
    refuse({}, 96);
}

TEST(TraceFile, RejectsDecompressionBombs) {
    MadeTrace trace;
    trace.compressed();
    const std::vector<std::byte> payload(max_trace_chunk_bytes);
    trace.chunk(TraceChunkKind::entries, payload);
    EXPECT_EQ(problem_of(trace.bytes()), "");
    trace.end().chunk(TraceChunkKind::entries, payload);
    const std::size_t begin = trace.boundaries()[2] + sizeof(TraceChunkHeader);
    expect_problem(trace.bytes(), begin, "134217728 B when decompressed in ", "256 times");
}

TEST(TraceFile, RejectsADamagedFrame) {
    std::vector<std::byte> payload;
    for (unsigned i = 0; i < 3200; ++i) payload.push_back(static_cast<std::byte>(i * i >> 3));
    const std::vector<std::byte> frame = zstd_frame(payload);
    std::size_t found = 0;
    for (std::size_t at = 0; at < frame.size(); ++at) {
        std::vector<std::byte> damaged = frame;
        damaged[at] ^= std::byte{0xff};
        const std::string problem = problem_of(with_frame(damaged, payload.size()).bytes());
        if (!problem.empty()) ++found;
    }
    // A changed literal is still a literal, so some changes are not detected.
    EXPECT_GT(found, 3U);
}

TEST(TraceFile, ReportsWhyAFileCannotBeRead) {
    const auto why = [](const std::string& path) -> std::string {
        try {
            TraceFile file{Input(path)};
        } catch (const CommandError& error) {
            return error.what();
        }
        return {};
    };
    EXPECT_NE(why("/nonexistent/a.tpt").find("No such file"), std::string::npos);
    EXPECT_NE(why("/dev/null").find("not a regular file"), std::string::npos);
    EXPECT_NE(why("/").find("not a regular file"), std::string::npos);
}

}  // namespace
}  // namespace tensorpool::command::trace
