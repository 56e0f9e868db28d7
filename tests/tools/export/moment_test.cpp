#include "export/formats.hpp"

#include <gtest/gtest.h>

#include "tools/inspect/made_recording.hpp"

namespace tensorpool::command::export_ {
namespace {

using trace::testing::MadeRecording;

TEST(Moment, PeakIsTheFirstMaximum) {
    MadeRecording made;
    made.allocate(0x10000, 100);
    made.deallocate(0x10000, 128);
    made.allocate(0x20000, 100);
    made.allocate(0x30000, 0);
    const History history(made.recording());
    EXPECT_EQ(moment_of(history, At::peak).calls, 1U);
    EXPECT_EQ(moment_of(history, At::end).calls, 4U);
}

TEST(Moment, MayPrecedeTheFirstCall) {
    MadeRecording made;
    made.deallocate(0x10000, 128);
    const History history(made.recording());
    const Moment peak = moment_of(history, At::peak);
    EXPECT_EQ(peak.calls, 0U);
    EXPECT_TRUE(peak.is_alive(history.lifetimes()[0]));
    EXPECT_FALSE(moment_of(history, At::end).is_alive(history.lifetimes()[0]));
}

}  // namespace
}  // namespace tensorpool::command::export_
