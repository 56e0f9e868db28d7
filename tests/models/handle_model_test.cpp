// Random programs over handles of all sources, in one thread and in several, checked against a map
// of bytes. Each source with a fault in how it gives blocks back must be found.

#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "models/handle_program.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool {
namespace {

using testing::GiveBackFault;
using testing::HandleProgram;
using testing::HandleWorld;
using testing::Programs;
using testing::SourceKind;

/// Runs a program alone, with releases of the arenas in between. Throws what it finds.
void run_alone(unsigned seed, SourceKind faulty, GiveBackFault fault) {
    HandleWorld world(faulty, fault);
    HandleProgram program(world, seed, Programs::one, true);
    for (int round = 0; round < 6; ++round) {
        program.run(100);
        if (round % 2 == 1) program.release_arenas();
    }
    program.end_all();
    world.sources.check_nothing_in_use();
}

std::string found_alone(unsigned seed, SourceKind faulty, GiveBackFault fault) {
    std::string found;
    // A thread of its own has a scratch of its own, which a fault spoils.
    std::thread([&] {
        try {
            run_alone(seed, faulty, fault);
        } catch (const std::runtime_error& error) {
            found = error.what();
        }
    }).join();
    return found;
}

/// Runs programs on several threads, with releases of the arenas in between. Returns what they
/// find.
std::string found_by_threads(unsigned seed, SourceKind faulty, GiveBackFault fault) {
    constexpr unsigned count = 3;
    HandleWorld world(faulty, fault);
    std::vector<std::unique_ptr<HandleProgram>> programs;
    for (unsigned i = 0; i < count; ++i) {
        programs.push_back(
            std::make_unique<HandleProgram>(world, seed * count + i, Programs::several, i == 0));
    }
    std::mutex mutex;
    std::string found;
    const auto run = [&](HandleProgram& program) {
        try {
            program.run(200);
        } catch (const std::runtime_error& error) {
            const std::lock_guard guard(mutex);
            found = error.what();
        }
    };
    for (int round = 0; round < 4 && found.empty(); ++round) {
        std::vector<std::thread> threads;
        for (const auto& program : programs) threads.emplace_back(run, std::ref(*program));
        for (std::thread& thread : threads) thread.join();
        if (!found.empty()) break;
        for (const auto& program : programs) program->leave_all();
        if (round % 2 == 1) programs[0]->release_arenas();
    }
    if (!found.empty()) return found;
    try {
        programs[0]->end_all();
        world.sources.check_nothing_in_use();
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

using Run = std::string(unsigned seed, SourceKind faulty, GiveBackFault fault);

/// Returns what the first of some programs finds; "" if none finds anything.
std::string first_found(Run& run, SourceKind faulty, GiveBackFault fault) {
    for (unsigned seed = 1; seed <= 40; ++seed) {
        const std::string found = run(seed, faulty, fault);
        if (!found.empty()) return found;
    }
    return "";
}

constexpr SourceKind all_kinds[] = {SourceKind::pool,    SourceKind::arena,   SourceKind::context,
                                    SourceKind::scratch, SourceKind::planned, SourceKind::device};

TEST(HandleModel, ProgramsFindNothing) {
    EXPECT_EQ(first_found(found_alone, SourceKind::pool, GiveBackFault::none), "");
}

TEST(HandleModel, ProgramsOnSeveralThreadsFindNothing) {
    EXPECT_EQ(first_found(found_by_threads, SourceKind::pool, GiveBackFault::none), "");
}

TEST(HandleModel, FindsASourceThatForgetsABlock) {
    for (const SourceKind kind : all_kinds) {
        EXPECT_NE(first_found(found_alone, kind, GiveBackFault::forgets), "") << to_string(kind);
    }
}

TEST(HandleModel, FindsASourceThatTakesABlockEarly) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "the memory tool stops at the planted fault";
    for (const SourceKind kind : all_kinds) {
        EXPECT_NE(first_found(found_alone, kind, GiveBackFault::early), "") << to_string(kind);
    }
}

TEST(HandleModel, FindsASourceThatTakesABlockEarlyOnSeveralThreads) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "the memory tool stops at the planted fault";
    for (const SourceKind kind :
         {SourceKind::pool, SourceKind::arena, SourceKind::context, SourceKind::device}) {
        EXPECT_NE(first_found(found_by_threads, kind, GiveBackFault::early), "") << to_string(kind);
    }
}

TEST(HandleModel, FindsAnArenaThatIgnoresReleases) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "the memory tool stops at the planted fault";
    for (const SourceKind kind : {SourceKind::arena, SourceKind::context}) {
        EXPECT_NE(first_found(found_alone, kind, GiveBackFault::ignores_releases), "")
            << to_string(kind);
    }
}

}  // namespace
}  // namespace tensorpool
