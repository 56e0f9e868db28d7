/// @file
/// Contenders in processes of their own: this program again.

#include "replay/contender_process.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "common/settings.hpp"
#include "made_recording.hpp"
#include "replay/plan_compiler.hpp"
#include "replay/plan_file.hpp"

namespace tensorpool::command::replay {
namespace {

Contender named(const std::string& name, std::vector<std::string> options = {}) {
    return contenders_of(std::vector{name}, options).front();
}

/// What is refused, with these words in the reason.
void expect_refusal(const Contender& contender, std::uint64_t bytes, const std::string& part) {
    MadeRecording made(1);
    made.allocate(0, 64, bytes);
    const PlanFile plan(compile(made.get(), 0, Places::yes));
    try {
        run_contender(contender, Touch::none, plan.descriptor());
        ADD_FAILURE() << "expected " << part;
    } catch (const CommandError& error) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

TEST(ContenderProcess, EachThatIsThereIsWhatItIsCalled) {
    for (const char* const name : {"glibc", "tcmalloc", "jemalloc", "jemalloc-tuned", "mimalloc"}) {
        const Contender contender = named(name);
        const std::string hindrance = what_hinders(contender);
        if (!hindrance.empty()) {
            // Not installed, or a sanitizer has taken malloc's place: that is found too.
            EXPECT_NE(hindrance.find("expected " + contender.library), std::string::npos)
                << hindrance;
            EXPECT_NE(hindrance.find(contender.package), std::string::npos) << hindrance;
            continue;
        }
        MadeRecording made(1);
        made.allocate(0, 64, 1000);
        const PlanFile plan(compile(made.get(), 0, Places::no));
        const ContenderAnswer answer = run_contender(contender, Touch::all, plan.descriptor());
        EXPECT_EQ(std::string(answer.malloc_file).substr(0, contender.library.size()),
                  contender.library);
        EXPECT_EQ(answer.never_decays == 1, contender.never_decays) << name;
        EXPECT_EQ(answer.allocations, 1u);
    }
}

TEST(ContenderProcess, AnotherMallocThanItsOwnIsNotMeasured) {
    Contender contender = named("jemalloc");
    contender.preload = false;
    EXPECT_NE(what_hinders(contender).find("expected libjemalloc.so.2, which the Debian package "
                                           "libjemalloc2 brings"),
              std::string::npos);
    expect_refusal(contender, 1, "expected libjemalloc.so.2");
}

TEST(ContenderProcess, WhatIsNotThereIsNamedWithItsPackage) {
    Contender contender = named("mimalloc");
    contender.library = "libmimalloc.so.99";
    EXPECT_NE(what_hinders(contender).find("expected libmimalloc.so.99, which the Debian package "
                                           "libmimalloc2.0 brings"),
              std::string::npos);
}

TEST(ContenderProcess, JemallocThatWasNotTunedIsFound) {
    Contender contender = named("jemalloc-tuned");
    contender.variables.clear();
    EXPECT_NE(what_hinders(contender), "");
}

TEST(ContenderProcess, OptionsReachThePool) {
    EXPECT_EQ(what_hinders(named("pool", {"max_allocation=1KiB"})), "");
    expect_refusal(named("pool", {"max_allocation=1MiB"}), 2 << 20,
                   "it refused a request of 2097152 bytes");
    expect_refusal(named("pool:max_capacity=8MiB"), 16 << 20, "it refused a request");
}

TEST(ContenderProcess, AValueThatMakesNoSenseIsTold) {
    try {
        what_hinders(named("pool", {"huge_pages=purple"}));
        FAIL();
    } catch (const CommandError& error) {
        EXPECT_EQ(error.code(), wrong_usage);
        EXPECT_NE(std::string(error.what()).find("never, buckets, auto or always"),
                  std::string::npos)
            << error.what();
    }
}

TEST(ContenderProcess, VariablesThatTuneAreNotPassedOn) {
    setenv("TENSORPOOL_MAX_ALLOCATION", "1KiB", 1);
    MadeRecording made(1);
    made.allocate(0, 64, 1 << 20);
    const PlanFile plan(compile(made.get(), 0, Places::no));
    EXPECT_EQ(run_contender(named("pool"), Touch::first, plan.descriptor()).allocations, 1u);
    unsetenv("TENSORPOOL_MAX_ALLOCATION");
}

}  // namespace
}  // namespace tensorpool::command::replay
