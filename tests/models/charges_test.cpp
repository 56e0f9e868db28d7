// Random programs in scopes of budgets: blocks of all sizes that any thread frees and resizes,
// arenas, scratches, stashes in memory and in files, coroutines whose parts run on any thread,
// limits that change, disks that are full, requests that are refused, and children of the process.
// When all threads pause outside of scopes, what is charged to each budget is exactly what must be.
// Each planted fault must be found.
//
// The long form has other seeds in each repetition:
//     models_tests --gtest_filter=ChargesModel.* --gtest_shuffle --gtest_repeat=1000

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "models/charges.hpp"

namespace tensorpool {
namespace {

using testing::ChargedProgram;
using testing::ChargedWorld;
using testing::ChargeFault;
using testing::Choices;

/// Runs programs on some threads, in rounds with other limits. Returns what they find.
std::string found(unsigned seed, unsigned threads, ChargeFault fault = ChargeFault::none) {
    ChargedWorld world(fault);
    Choices choices(seed);
    std::string error;
    {
        std::vector<std::unique_ptr<ChargedProgram>> programs;
        for (unsigned i = 0; i < threads; ++i)
            programs.push_back(std::make_unique<ChargedProgram>(world, seed * 10 + i));
        std::mutex mutex;
        for (int round = 0; round < 8 && error.empty(); ++round) {
            std::vector<std::thread> running;
            for (const auto& program : programs) {
                running.emplace_back([&] {
                    try {
                        program->run(200);
                    } catch (const std::runtime_error& what) {
                        const std::lock_guard guard(mutex);
                        error = what.what();
                    }
                });
            }
            for (std::thread& thread : running) thread.join();
            if (!error.empty()) break;
            try {
                world.check();
            } catch (const std::runtime_error& what) {
                error = what.what();
            }
            world.change_limits(choices);
        }
    }
    if (!error.empty() || fault != ChargeFault::none) return error;
    world.free_all();
    try {
        world.check();
    } catch (const std::runtime_error& what) {
        return what.what();
    }
    return "";
}

unsigned first_seed() {
    return static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed()) * 1000 + 1;
}

std::string first_found(unsigned threads, unsigned seeds, ChargeFault fault = ChargeFault::none) {
    for (unsigned seed = first_seed(); seed < first_seed() + seeds; ++seed) {
        const std::string error = found(seed, threads, fault);
        if (!error.empty()) return error + " (seed " + std::to_string(seed) + ")";
    }
    return "";
}

#ifdef __SANITIZE_THREAD__
constexpr unsigned seeds_of_threads = 3;
#else
constexpr unsigned seeds_of_threads = 10;
#endif

TEST(ChargesModel, OneThreadFindsNothing) {
    EXPECT_EQ(first_found(1, 20), "");
}

TEST(ChargesModel, SeveralThreadsFindNothing) {
    EXPECT_EQ(first_found(3, seeds_of_threads), "");
}

TEST(ChargesModel, ChildOfAForkFindsNothing) {
    ChargedWorld world(ChargeFault::none);
    ChargedProgram program(world, first_seed());
    program.run(300);
    const pid_t child = fork();
    if (child == 0) {
        try {
            world.check();
            program.run(300);
            world.check();
            _exit(0);
        } catch (const std::runtime_error& error) {
            std::fprintf(stderr, "%s\n", error.what());
            _exit(1);
        }
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_NO_THROW(world.check());
}

TEST(ChargesModel, FindsEachPlantedFault) {
    for (const ChargeFault fault :
         {ChargeFault::keeps_charge, ChargeFault::charges_outer, ChargeFault::refunds_twice,
          ChargeFault::keeps_growth, ChargeFault::passes_limit}) {
        EXPECT_NE(first_found(1, 10, fault), "") << static_cast<int>(fault);
        EXPECT_NE(first_found(3, 10, fault), "") << static_cast<int>(fault);
    }
}

}  // namespace
}  // namespace tensorpool
