// Exports of recordings with random calls are complete.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "tools/export/exported.hpp"
#include "tools/inspect/made_recording.hpp"

namespace tensorpool::command::export_ {
namespace {

using trace::testing::MadeRecording;

/// Random calls over a few addresses, so that they collide.
MadeRecording any_calls(std::mt19937& random) {
    MadeRecording made;
    for (unsigned i = 0; i < 4; ++i) made.source(static_cast<TraceSource>(i + 1), "<name>");
    const auto module = made.module("/nowhere");
    const auto stack = made.stack({{module, 1}});
    for (int i = 0; i < 300; ++i) {
        const auto action = static_cast<TraceAction>(random() % 14 + 2);
        if (action == TraceAction::frames) continue;
        const std::uint64_t address =
            random() % 50 == 0 ? UINT64_MAX - random() % 5000 : 0x10000 + random() % 9 * 0x800;
        const std::uint64_t bytes = random() % 50 == 0 ? UINT64_MAX : random() % 5000;
        const auto source = static_cast<std::uint32_t>(random() % 6);
        made.call(action, address, bytes, source).stack = random() % 2 == 0 ? stack : 0;
    }
    return made;
}

TEST(AnyCalls, AreWrittenInAllFormats) {
    std::mt19937 random(1);
    for (int i = 0; i < 20; ++i) {
        MadeRecording made = any_calls(random);
        const History history(made.recording());
        const Moment moment = moment_of(history, i % 2 == 0 ? At::peak : At::end);
        const auto chrome =
            testing::written([&](WrittenFile& file) { write_chrome_trace(history, file); });
        EXPECT_TRUE(nlohmann::json::accept(chrome));
        const auto log = testing::written([&](WrittenFile& file) { write_rmm_log(history, file); });
        EXPECT_NO_THROW(trace::read_recording(std::as_bytes(std::span(log)), "log"));
        const auto heap =
            testing::written([&](WrittenFile& file) { write_heap_profile(history, moment, file); });
        EXPECT_NE(heap.find("MAPPED_LIBRARIES"), std::string::npos);
    }
}

TEST(AnyCalls, GiveAValidSnapshot) {
    if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "install python3";
    std::mt19937 random(2);
    for (int i = 0; i < 5; ++i) {
        MadeRecording made = any_calls(random);
        const History history(made.recording());
        const Moment moment = moment_of(history, At::end);
        const std::string pickle = testing::written(
            [&](WrittenFile& file) { write_snapshot(history, moment, 1000, file); });
        EXPECT_FALSE(testing::checked_snapshot(pickle).empty());
    }
}

}  // namespace
}  // namespace tensorpool::command::export_
