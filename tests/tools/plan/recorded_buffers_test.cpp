#include "plan/buffers.hpp"

#include <gtest/gtest.h>

#include "common/settings.hpp"
#include "tools/inspect/made_recording.hpp"

namespace tensorpool::command::planning {
namespace {

using trace::testing::MadeRecording;
using enum TraceAction;

class RecordedBuffers : public ::testing::Test {
protected:
    Buffers choose(const Choice& choice = {}) {
        return buffers_of(made_.recording(), choice, "the trace");
    }
    std::string problem(const Choice& choice) {
        try {
            choose(choice);
        } catch (const CommandError& error) {
            return error.what();
        }
        return "";
    }
    MadeRecording made_;
};

TEST_F(RecordedBuffers, LiveFromCallToCall) {
    made_.allocate(0x1000, 100);
    made_.allocate(0x2000, 200).alignment_log2 = 12;
    made_.deallocate(0x1000, 128);
    const Buffers buffers = choose();
    EXPECT_EQ(buffers.lifetimes, (std::vector<TensorLifetime>{{0, 2, 100, 64}, {1, 4, 200, 4096}}))
        << "a block alive at the end ends after the last call";
    EXPECT_EQ(buffers.ids, (std::vector<std::string>{"global#0", "global#1"}));
    EXPECT_EQ(buffers.clock, "calls");
    EXPECT_EQ(buffers.origin, "process 7 (program)");
}

TEST_F(RecordedBuffers, OlderThanTheRecordingBeginBeforeTheFirstCall) {
    made_.allocate(0x1000, 100);
    made_.deallocate(0x5000, 4096);
    const Buffers buffers = choose();
    EXPECT_EQ(buffers.lifetimes, (std::vector<TensorLifetime>{{-1, 1, 4096, 64}, {0, 3, 100, 64}}));
    EXPECT_EQ(buffers.ids[0], "global#before");
}

TEST_F(RecordedBuffers, AResizedBlockIsTwoBuffers) {
    made_.allocate(0x1000, 100);
    made_.call(resize, 0x1000, 300);
    made_.deallocate(0x1000, 512);
    EXPECT_EQ(choose().lifetimes, (std::vector<TensorLifetime>{{0, 1, 100, 64}, {1, 2, 300, 64}}));
}

TEST_F(RecordedBuffers, OfDevicesAreIncludedOnlyOnRequest) {
    const std::uint32_t device = made_.source(TraceSource::device, "cuda:0");
    const std::uint32_t arena = made_.source(TraceSource::arena, "step");
    made_.allocate(0x1000, 1);
    made_.allocate(0x1000, 2, device);
    made_.call(arena_allocate, 0x9000, 3, arena);
    const auto sizes = [&](const Choice& choice) {
        std::vector<std::uint64_t> chosen;
        for (const TensorLifetime& lifetime : choose(choice).lifetimes)
            chosen.push_back(lifetime.bytes);
        return chosen;
    };
    using Sizes = std::vector<std::uint64_t>;
    EXPECT_EQ(sizes({}), (Sizes{1, 3}));
    EXPECT_EQ(sizes({.kind = Kind::pools}), Sizes{1});
    EXPECT_EQ(sizes({.kind = Kind::arenas}), Sizes{3});
    EXPECT_EQ(sizes({.kind = Kind::devices}), Sizes{2});
    EXPECT_EQ(sizes({.kind = Kind::all}), (Sizes{1, 2, 3}));
    EXPECT_EQ(sizes({.sources = {"cuda:0", "step"}}), (Sizes{2, 3}));
}

TEST_F(RecordedBuffers, AreOfTheProcessWithTheMostBytes) {
    const std::uint32_t process = made_.process("other", 8);
    const std::uint32_t thread = made_.thread(process, 80);
    const std::uint32_t pool = made_.source(TraceSource::pool, "theirs", process);
    made_.allocate(0x1000, 10);
    made_.allocate(0x1000, 99, pool).thread = thread;
    EXPECT_EQ(choose().lifetimes.at(0).bytes, 99u);
    EXPECT_EQ(choose().origin, "process 8 (other) of 2");
    EXPECT_EQ(choose({.process = 7}).lifetimes.at(0).bytes, 10u);
}

TEST_F(RecordedBuffers, AreCutAtTheLimitsOfTheChoice) {
    made_.allocate(0x1000, 10);    // 0
    made_.allocate(0x2000, 20);    // 1
    made_.deallocate(0x2000, 64);  // 2
    made_.allocate(0x3000, 30);    // 3
    made_.allocate(0x4000, 40);    // 4
    made_.deallocate(0x3000, 64);  // 5
    const Buffers buffers = choose({.from = 2, .to = 4});
    EXPECT_EQ(buffers.lifetimes, (std::vector<TensorLifetime>{{2, 4, 10, 64}, {3, 4, 30, 64}}));
    EXPECT_EQ(buffers.origin, "process 7 (program), calls 2 to 4 of 6");
}

TEST_F(RecordedBuffers, EmptyChoiceReportsTheContents) {
    made_.allocate(0x1000, 10);
    const std::string what =
        "the trace: contains no block that matches the options; it contains 1 calls, \"global\" of "
        "process 7";
    EXPECT_EQ(problem({.process = 9}), what);
    EXPECT_EQ(problem({.sources = {"globe"}}), what);
    EXPECT_EQ(problem({.kind = Kind::devices}), what);
    EXPECT_EQ(problem({.from = 100}), what);
}

TEST_F(RecordedBuffers, KeepTheRequestedAlignment) {
    made_.allocate(0x1000, 10).alignment_log2 = 3;
    EXPECT_EQ(choose({.alignment = 1}).lifetimes.at(0).alignment, 8u);
}

TEST_F(RecordedBuffers, RejectHugeSizes) {
    made_.allocate(0x1000, UINT64_MAX).alignment_log2 = 63;
    EXPECT_NE(problem({}).find("expected at most 2^62 - 1"), std::string::npos);
}

}  // namespace
}  // namespace tensorpool::command::planning
