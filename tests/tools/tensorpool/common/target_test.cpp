#include "common/target.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command {
namespace {

std::vector<ObservedProcess> processes() {
    return {{1, "train", true, ""},
            {2, "trainer", true, ""},
            {3, "serving", true, ""},
            {4, "a_name_of_fifte", true, ""},  // cut by the kernel
            {5, "serving", false, "it is another user's"}};
}

Settings by_name(const std::string& name) {
    Settings settings;
    settings.name = name;
    return settings;
}

std::string refusal(const std::vector<ObservedProcess>& found, const Settings& settings,
                    ExitCode expected) {
    try {
        choose_process(found, settings);
    } catch (const CommandError& error) {
        EXPECT_EQ(error.code(), expected);
        return error.what();
    }
    return "none";
}

TEST(Target, AFullMatchTakesPrecedence) {
    EXPECT_EQ(choose_process(processes(), by_name("train")), 1u);
    EXPECT_EQ(choose_process(processes(), by_name("rainer")), 2u);
}

TEST(Target, ANameMayBeLongerThanTheKernelKeeps) {
    EXPECT_EQ(choose_process(processes(), by_name("a_name_of_fifteen_and_more")), 4u);
}

TEST(Target, AReadableProcessTakesPrecedence) {
    EXPECT_EQ(choose_process(processes(), by_name("serving")), 3u);
}

TEST(Target, SeveralMatchesAreListedWithAdvice) {
    EXPECT_EQ(
        refusal(processes(), by_name("rain"), wrong_usage),
        "there are 2 processes whose names match rain: 1 (train), 2 (trainer); choose one with "
        "--pid");
    EXPECT_EQ(refusal(processes(), {}, wrong_usage).substr(0, 21), "there are 4 processes");
}

TEST(Target, NoMatchIsReportedWithAdvice) {
    EXPECT_EQ(refusal(processes(), by_name("absent"), target_gone),
              "no process named absent has a pool; `tensorpool ls` lists those that do, --wait "
              "waits for one");
    EXPECT_NE(refusal({}, {}, target_gone).find("tensorpool doctor"), std::string::npos);
}

TEST(Target, TheOnlyOneNeedsNoName) {
    EXPECT_EQ(choose_process({{7, "x", true, ""}}, {}), 7u);
}

TEST(Target, AProcessIdIsUsedUnchanged) {
    Settings settings;
    settings.process = 99;
    EXPECT_EQ(choose_process({}, settings), 99u);
}

TEST(Target, NamesInMessagesAreMadePrintable) {
    const std::string text =
        refusal({{1, "a\x1b[2J", true, ""}, {2, "b", true, ""}}, {}, wrong_usage);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(Target, AnEndedProcessHasItsOwnStatus) {
    EXPECT_EQ(to_command_error({AttachFailure::ended, "x"}).code(), target_gone);
    EXPECT_EQ(to_command_error({AttachFailure::no_process, "x"}).code(), target_gone);
    EXPECT_EQ(to_command_error({AttachFailure::other_user, "x"}).code(), finding);
}

}  // namespace
}  // namespace tensorpool::command
