/// @file
/// Tests `tensorpool leaks` with this process, and its options.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/heap_profile.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/timeline.hpp>

#include "support/run_program.hpp"

namespace tensorpool::command {
namespace {

using testing::ProgramResult;
using testing::run_program;

constexpr std::size_t kib = 1024;

/// Computes for some time, about 15 ms. A thread that only sleeps has no processor time for
/// samples.
void work() {
    for (volatile unsigned step = 0; step != 10'000'000;) step = step + 1;
}

/// Runs `iteration` again and again on another thread until destroyed.
class Loop {
public:
    explicit Loop(std::function<void()> iteration)
        : thread_([this, iteration = std::move(iteration)] {
              while (!ends_) {
                  work();
                  iteration();
              }
          }) {}
    ~Loop() {
        ends_ = true;
        thread_.join();
    }
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

private:
    std::atomic<bool> ends_ = false;
    std::thread thread_;
};

ProgramResult find_leaks_here(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"leaks", "--pid", std::to_string(getpid())});
    return run_program(TENSORPOOL_PROGRAM, arguments);
}

class LeaksProgram : public ::testing::Test {
protected:
    LeaksProgram() { set_profile_interval(16 * kib); }
    ~LeaksProgram() override {
        for (void* const block : kept_) pool_.deallocate(block);
        set_profile_interval(before_);
    }

    std::size_t before_ = profile_interval();
    // Pools with checks, the default for debugging, take no samples.
    MemoryPool pool_{PoolOptions{.checks = Checks::off}};
    std::vector<void*> kept_;
};

TEST_F(LeaksProgram, FindsALeak) {
    ProgramResult result;
    {
        const Loop loop([&] {
            kept_.push_back(pool_.allocate(64 * kib));
            pool_.deallocate(pool_.allocate(256 * kib));
            mark_timeline("step");
        });
        result = find_leaks_here({});
    }
    EXPECT_EQ(result.exit_code, 1) << result.errors;
    EXPECT_NE(result.output.find("1 leak\n"), std::string::npos) << result.output;
    EXPECT_NE(result.output.find("\nleak"), std::string::npos) << result.output;
}

TEST_F(LeaksProgram, FindsNoneInASteadyProgram) {
    ProgramResult result;
    {
        const Loop loop([&] {
            void* const block = pool_.allocate(64 * kib);
            work();
            pool_.deallocate(block);
            mark_timeline("step");
            mark_timeline("other");
        });
        result = find_leaks_here({"--mark", "step"});
    }
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    // Beside other programs the reader may come late, and see more than the 20 that it waits for.
    std::smatch iterations;
    ASSERT_TRUE(std::regex_search(result.output, iterations,
                                  std::regex("([0-9]+) iterations by marks step in")))
        << result.output;
    EXPECT_GE(std::stoi(iterations[1]), 20) << result.output;
}

TEST_F(LeaksProgram, EndsIterationsAfterATime) {
    pool_.deallocate(pool_.allocate(kib));
    const ProgramResult result = find_leaks_here({"--every", "0.02", "--iterations", "3"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_NE(result.output.find("3 iterations of 0.02 s in "), std::string::npos) << result.output;
}

TEST_F(LeaksProgram, LetsAProcessWithoutSamplesBeginAndSaysSo) {
    pool_.deallocate(pool_.allocate(kib));
    set_profile_interval(0);
    ProgramResult result;
    {
        const Loop loop([&] { pool_.deallocate(pool_.allocate(256 * kib)); });
        result = find_leaks_here({"--every", "0.02", "--iterations", "2"});
    }
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.errors, "tensorpool: leaks: sampling was off; process " +
                                 std::to_string(getpid()) +
                                 " samples one allocation in 512 KiB on average now, each thread "
                                 "within its next 64 MiB of allocations; what it allocated before "
                                 "is unknown\n");
    EXPECT_EQ(profile_interval(), 512 * kib);
}

TEST_F(LeaksProgram, ReportsThatAProcessWithoutSamplesDoesNotBegin) {
    pool_.deallocate(pool_.allocate(kib));
    set_profile_interval(0);
    const ProgramResult result = find_leaks_here({"--every", "0.02", "--iterations", "1"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.errors.find("still samples no allocation: none of its threads took a slow "
                                 "path"),
              std::string::npos)
        << result.errors;
}

TEST(LeaksProgramRun, ReportsThatAProgramMakesNoMarks) {
    const ProgramResult result =
        run_program(TENSORPOOL_PROGRAM, {"leaks", "--with", "none", "--", "/bin/true"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.errors,
              "tensorpool: leaks: found fewer than 3 ends of iterations: mark the end of each with "
              "tensorpool::mark_timeline(\"step\") in C++ or `with "
              "tensorpool.iteration(\"step\"):` in Python, or give --every SECONDS\n");
}

TEST(LeaksOptions, RefusesThoseThatExcludeEachOther) {
    const ProgramResult both =
        run_program(TENSORPOOL_PROGRAM, {"leaks", "--pid", "1", "--", "/bin/true"});
    EXPECT_EQ(both.exit_code, 2);
    EXPECT_EQ(both.errors,
              "tensorpool: leaks: found a process and a program to start; expected one of them\n");
    EXPECT_EQ(run_program(TENSORPOOL_PROGRAM, {"leaks", "--"}).errors,
              "tensorpool: leaks: found nothing after --; expected a program to start, as in "
              "`tensorpool leaks -- python3 train.py`\n");
    EXPECT_EQ(run_program(TENSORPOOL_PROGRAM, {"leaks", "--mark", "a", "--every", "1"}).exit_code,
              2);
    EXPECT_EQ(run_program(TENSORPOOL_PROGRAM, {"leaks", "--with", "malloc"}).exit_code, 2);
}

}  // namespace
}  // namespace tensorpool::command
