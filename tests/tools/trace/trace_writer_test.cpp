
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "formats/trace/recording.hpp"
#include "formats/trace/trace_file.hpp"
#include "made_trace.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::trace {
namespace {

using testing::entry;
using testing::thread_entry;
using enum TraceAction;

constexpr std::uint64_t process_number = 4711;

class TraceWriterTest : public ::testing::Test {
protected:
    std::string path() const { return folder_.path() / "a.tpt"; }

    static TracePart part_of(TraceChunkKind kind, std::span<const std::byte> payload,
                             std::uint32_t ring = 0, std::uint64_t dropped = 0) {
        return {.kind = kind, .ring = ring, .dropped = dropped, .payload = payload};
    }
    static void add_process(TraceWriter& writer, std::uint64_t number = process_number) {
        TraceProcess process{};
        process.process = number;
        process.begun_cycles = trace_moment().cycles;
        process.begun_unix_ns = trace_moment().unix_ns;
        process.page_bytes = 4096;
        std::memcpy(process.name, "program", 7);
        writer.add(number, part_of(TraceChunkKind::process, std::as_bytes(std::span(&process, 1))));
        TraceName name{};
        name.source = 1;
        name.kind = TraceSource::pool;
        std::memcpy(name.text, "global", 6);
        writer.add(number, part_of(TraceChunkKind::names, std::as_bytes(std::span(&name, 1))));
    }
    static void add(TraceWriter& writer, const std::vector<TraceEntry>& entries,
                    std::uint32_t ring = 0, std::uint64_t dropped = 0,
                    std::uint64_t process = process_number) {
        writer.add(process, part_of(TraceChunkKind::entries, std::as_bytes(std::span(entries)),
                                    ring, dropped));
    }
    /// Entries with varying addresses and times, as real programs make them.
    static std::vector<TraceEntry> pairs(std::size_t count, std::uint64_t first = 0) {
        std::vector<TraceEntry> entries;
        std::uint64_t random = first + 1;
        for (std::size_t i = 0; i < count; ++i) {
            random = random * 6364136223846793005 + 1442695040888963407;
            const std::uint64_t cycles = trace_moment().cycles;
            const std::uint64_t address = 0x7f00'0000'0000 + (random >> 40) * 4096;
            entries.push_back(entry(allocate, cycles, address, random >> 50));
            entries.push_back(entry(deallocate, cycles + 100, address, random >> 50));
        }
        return entries;
    }
    std::vector<TraceChunkHeader> chunks() const {
        std::vector<TraceChunkHeader> headers;
        TraceFile file{Input(path())};
        for (TraceChunk chunk; file.next(chunk);) headers.push_back(chunk.header);
        EXPECT_EQ(file.cut_bytes(), 0U);
        return headers;
    }

    photos::TemporaryFolder folder_;
};

TEST_F(TraceWriterTest, WrittenFilesAreReadBack) {
    const std::vector<TraceEntry> some = pairs(10'000);
    {
        TraceWriter writer(path());
        add_process(writer);
        add(writer, {thread_entry(70)});
        add(writer, some);
        add(writer, {thread_entry(71), entry(refuse, trace_moment().cycles, 0, 9)}, 1, 3);
        writer.end(process_number);
        EXPECT_EQ(writer.entries(), some.size() + 3);
        EXPECT_EQ(writer.dropped(), 3U);
        EXPECT_EQ(writer.problem(), "");
        EXPECT_EQ(writer.written_bytes(), std::filesystem::file_size(path()));
        EXPECT_LT(writer.written_bytes(), some.size() * sizeof(TraceEntry) / 2);
    }
    const Recording recording = read_recording(path());
    ASSERT_EQ(recording.calls.size(), some.size() + 1);
    for (std::size_t i = 0; i < some.size(); ++i) {
        ASSERT_EQ(recording.calls[i].address, some[i].address) << i;
        ASSERT_EQ(recording.calls[i].bytes, some[i].bytes) << i;
        ASSERT_EQ(recording.calls[i].action, some[i].action) << i;
    }
    EXPECT_EQ(recording.calls.back().action, refuse);
    EXPECT_TRUE(recording.processes.at(0).ended);
    EXPECT_EQ(recording.processes.at(0).dropped, 3U);
    EXPECT_EQ(recording.cut_bytes, 0U);
    // The length of a cycle depends on the machine's clocks.
    EXPECT_LT(recording.calls.back().time_ns, 60'000'000'000U);
    EXPECT_GT(recording.calls.back().time_ns, 1000U);
}

TEST_F(TraceWriterTest, GathersSmallPiecesOfEachRing) {
    TraceWriter writer(path());
    add_process(writer);
    for (unsigned piece = 0; piece < 300; ++piece) {
        add(writer, pairs(20, piece), piece % 2);
    }
    writer.flush();
    std::size_t chunks_of_entries = 0;
    for (const TraceChunkHeader& header : chunks()) {
        if (header.kind != TraceChunkKind::entries) continue;
        ++chunks_of_entries;
        EXPECT_EQ(header.compression, TraceCompression::zstd);
    }
    EXPECT_EQ(chunks_of_entries, 4U);  // 6,000 entries per ring, 4,096 per chunk
    EXPECT_EQ(read_recording(path()).calls.size(), 300U * 40);
}

TEST_F(TraceWriterTest, FlushWritesEverything) {
    TraceWriter writer(path());
    add_process(writer);
    add(writer, pairs(5));
    EXPECT_EQ(read_recording(path()).calls.size(), 0U);
    writer.flush();
    EXPECT_EQ(read_recording(path()).calls.size(), 10U);
    writer.flush();
    EXPECT_EQ(writer.written_bytes(), std::filesystem::file_size(path()));
}

TEST_F(TraceWriterTest, SeparatesProcessesEvenOfTheSameNumber) {
    {
        TraceWriter writer(path());
        for (const std::uint64_t process : {10U, 11U, 10U}) {
            add_process(writer, process);
            add(writer, {thread_entry(1)}, 0, 5, process);
            add(writer, pairs(3), 0, 5, process);
        }
        EXPECT_EQ(writer.dropped(), 15U);
        writer.end(11);
    }
    const Recording recording = read_recording(path());
    ASSERT_EQ(recording.processes.size(), 3U);
    EXPECT_EQ(recording.calls.size(), 18U);
    EXPECT_TRUE(recording.processes[1].ended);
    EXPECT_FALSE(recording.processes[2].ended);
}

TEST_F(TraceWriterTest, TheFileIsPrivateEvenIfItExisted) {
    folder_.file("a.tpt", "other content, readable by all users");
    ASSERT_EQ(::chmod(path().c_str(), 0644), 0);
    const TraceWriter writer(path());
    struct stat status = {};
    ASSERT_EQ(::stat(path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0600U);
    EXPECT_EQ(read_recording(path()).calls.size(), 0U);
}

std::string why_not(const std::string& path) {
    try {
        const TraceWriter writer(path);
    } catch (const CommandError& error) {
        EXPECT_EQ(error.code(), finding);
        return error.what();
    }
    return {};
}

TEST_F(TraceWriterTest, ReportsWhyAFileCannotBeCreated) {
    EXPECT_NE(why_not("/nonexistent/a.tpt").find("No such file or directory; give another file"),
              std::string::npos);
    EXPECT_NE(why_not(folder_.path()).find("Is a directory"), std::string::npos);
}

TEST_F(TraceWriterTest, AFileInUseIsNotOverwritten) {
    TraceWriter writer(path());
    add_process(writer);
    EXPECT_NE(why_not(path()).find("another process is recording into it"), std::string::npos);
    EXPECT_EQ(read_recording(path()).processes.size(), 1U);
}

TEST_F(TraceWriterTest, AFullDiskStopsItWithAMessage) {
    TraceWriter writer("/dev/full");
    EXPECT_EQ(writer.problem(), "No space left on device");
    add_process(writer);
    add(writer, pairs(100'000));
    writer.end(process_number);
    EXPECT_EQ(writer.entries(), 0U);
    EXPECT_EQ(writer.written_bytes(), 0U);
}

/// Limits the size of files while it exists.
class FileLimit {
public:
    explicit FileLimit(rlim_t bytes) {
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
    FileLimit(const FileLimit&) = delete;
    FileLimit& operator=(const FileLimit&) = delete;

private:
    rlimit before_{};
};

TEST_F(TraceWriterTest, AFileSizeLimitEndsNeitherTheProgramNorLosesData) {
    constexpr rlim_t limit = 100'000;
    std::uint64_t added = 0;
    {
        const FileLimit guard(limit);
        TraceWriter writer(path());
        add_process(writer);
        add(writer, {thread_entry(1)});
        while (writer.problem().empty() && writer.entries() < 1'000'000) {
            add(writer, pairs(1000, added));
            added = writer.entries();
        }
        EXPECT_EQ(writer.problem(), "File too large");
        EXPECT_LE(writer.written_bytes(), limit);
        writer.end(process_number);
    }
    sigset_t pending;
    ASSERT_EQ(sigpending(&pending), 0);
    EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
    EXPECT_LE(std::filesystem::file_size(path()), limit);
    const Recording recording = read_recording(path());
    EXPECT_EQ(recording.cut_bytes, 0U);  // the incomplete piece was removed
    EXPECT_GE(recording.calls.size(), 4095U);
    EXPECT_LT(recording.calls.size(), added);
    EXPECT_FALSE(recording.processes.at(0).ended);
}

TEST_F(TraceWriterTest, IncompressibleDataStaysRaw) {
    {
        TraceWriter writer(path());
        add_process(writer);
        add(writer, {thread_entry(1)});
        writer.end(process_number);
    }
    const std::vector<TraceChunkHeader> headers = chunks();
    ASSERT_EQ(headers.size(), 4U);
    EXPECT_EQ(headers[0].compression, TraceCompression::zstd);  // mostly zeros
    EXPECT_EQ(headers[3].kind, TraceChunkKind::end);
    EXPECT_EQ(headers[3].compression, TraceCompression::none);
    EXPECT_EQ(headers[3].stored_bytes, 0U);
}

}  // namespace
}  // namespace tensorpool::command::trace
