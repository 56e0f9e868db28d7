#include "events/misuse.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <string>

namespace tensorpool::events {
namespace {

std::string described(const Misuse& misuse, MisuseStack here = {.thread = 7},
                      const char* words = "words") {
    char text[4096];
    const std::size_t length = describe_misuse(misuse, "fatal", words, here, text, sizeof text);
    return {text, length};
}

TEST(DescribeMisuse, FirstLineHasAllFields) {
    const Misuse misuse{.kind = MisuseKind::double_free,
                        .pointer = reinterpret_cast<void*>(0x1000),
                        .size = 1024,
                        .requested = 1000,
                        .owner = "mine"};
    EXPECT_EQ(described(misuse),
              "tensorpool: fatal: double-free ptr=0x1000 size=1024 requested=1000 pool=mine "
              "thread=7\n  words\n");
}

TEST(DescribeMisuse, UnknownValuesAreDashes) {
    const std::string text = described({.kind = MisuseKind::scope_order});
    EXPECT_NE(text.find(" size=- requested=- pool=- thread=7\n"), std::string::npos) << text;
}

TEST(DescribeMisuse, NamesCannotEndTheirField) {
    const std::string text = described({.kind = MisuseKind::leak, .owner = "a b=\n100%"});
    EXPECT_NE(text.find(" pool=a%20b=%0A100%25 thread="), std::string::npos) << text;
}

TEST(DescribeMisuse, StacksFollowTheWords) {
    const std::uintptr_t frames[] = {0x10, 0x20};
    const Misuse misuse{
        .kind = MisuseKind::access_after_free, .allocated = {1, frames}, .freed = {2, {frames, 1}}};
    const std::string text = described(misuse, {3, {frames, 1}});
    EXPECT_NE(text.find("  words\n  found by thread 3:\n    ?+0x10\n"
                        "  allocated by thread 1:\n    ?+0x10\n    ?+0x20\n"
                        "  freed by thread 2:\n    ?+0x10\n"),
              std::string::npos)
        << text;
}

TEST(DescribeMisuse, LongReportsAreCut) {
    char text[32];
    const std::size_t length = describe_misuse({.kind = MisuseKind::overrun, .owner = "mine"},
                                               "fatal", "words", {}, text, sizeof text);
    EXPECT_EQ(length, sizeof text - 1);
    EXPECT_EQ(std::string(text), "tensorpool: fatal: overrun ptr=");
}

TEST(DescribeMisuse, EveryKindHasAName) {
    for (unsigned kind = 0; kind <= static_cast<unsigned>(MisuseKind::outlived_owner); ++kind) {
        EXPECT_NE(std::string(name_of(static_cast<MisuseKind>(kind))), "");
    }
}

TEST(MisuseDeathTest, StopsTheProgramByDefault) {
    EXPECT_EXIT(report_misuse({.kind = MisuseKind::leak, .owner = "mine"}, "%d blocks", 2),
                ::testing::KilledBySignal(SIGABRT),
                "^tensorpool: fatal: leak .* pool=mine thread=[0-9]+\n  2 blocks\n");
}

TEST(MisuseDeathTest, GoesOnIfTheEnvironmentSaysSo) {
    const auto report_twice = [] {
        ::setenv("TENSORPOOL_ON_MISUSE", "report", 1);
        report_misuse({.kind = MisuseKind::leak, .owner = "mine"}, "first");
        stop_at_misuse({.kind = MisuseKind::double_free, .owner = "mine"}, "second");
    };
    EXPECT_EXIT(report_twice(), ::testing::KilledBySignal(SIGABRT),
                "^tensorpool: error: leak (.|\n)*tensorpool: fatal: double-free ");
}

TEST(MisuseDeathTest, NotedOnesAreReportedAndTheProgramGoesOn) {
    const auto note = [] {
        note_misuse({.kind = MisuseKind::stale_mark, .owner = "mine"}, "noted");
        std::_Exit(0);
    };
    EXPECT_EXIT(note(), ::testing::ExitedWithCode(0),
                "^tensorpool: error: stale-mark .* pool=mine thread=[0-9]+\n  noted\n");
}

}  // namespace
}  // namespace tensorpool::events
