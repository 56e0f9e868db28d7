/// @file
/// Tests allocators in processes of their own, in which this program runs again.

#include "replay/report.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "common/settings.hpp"
#include "made_recording.hpp"
#include "replay/plan.hpp"

namespace tensorpool::command::replay {
namespace {

ReplayAllocator named(const std::string& name, std::vector<std::string> options = {}) {
    return allocators_of(std::vector{name}, options).front();
}

/// Expects that the allocator fails to allocate `bytes`, with `part` in the message.
void expect_refusal(const ReplayAllocator& allocator, std::uint64_t bytes,
                    const std::string& part) {
    MadeRecording made(1);
    made.allocate(0, 64, bytes);
    const Descriptor plan = file_of(compile(made.get(), 0, Offsets::yes));
    try {
        run_allocator(allocator, Touch::none, plan.number());
        ADD_FAILURE() << "expected " << part;
    } catch (const CommandError& error) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

TEST(AllocatorProcess, InstalledAllocatorsServeMalloc) {
    for (const char* const name : {"glibc", "tcmalloc", "jemalloc", "jemalloc-tuned", "mimalloc"}) {
        const ReplayAllocator allocator = named(name);
        const std::string reason = why_unavailable(allocator);
        if (!reason.empty()) {
            // The library is not installed, or a sanitizer replaces malloc.
            EXPECT_NE(reason.find("expected " + allocator.library), std::string::npos) << reason;
            EXPECT_NE(reason.find(allocator.package), std::string::npos) << reason;
            continue;
        }
        MadeRecording made(1);
        made.allocate(0, 64, 1000);
        const Descriptor plan = file_of(compile(made.get(), 0, Offsets::no));
        const ReplayAnswer answer = run_allocator(allocator, Touch::all, plan.number());
        EXPECT_EQ(std::string(answer.malloc_file).substr(0, allocator.library.size()),
                  allocator.library);
        EXPECT_EQ(answer.never_decays == 1, allocator.never_decays) << name;
        EXPECT_EQ(answer.allocations, 1u);
    }
}

TEST(AllocatorProcess, DetectsAnotherMalloc) {
    ReplayAllocator allocator = named("jemalloc");
    allocator.preload = false;
    EXPECT_NE(why_unavailable(allocator).find("expected libjemalloc.so.2 from the Debian package "
                                              "libjemalloc2"),
              std::string::npos);
    expect_refusal(allocator, 1, "expected libjemalloc.so.2");
}

TEST(AllocatorProcess, ReportsThePackageOfAMissingLibrary) {
    ReplayAllocator allocator = named("mimalloc");
    allocator.library = "libmimalloc.so.99";
    EXPECT_NE(why_unavailable(allocator).find("expected libmimalloc.so.99 from the Debian package "
                                              "libmimalloc2.0"),
              std::string::npos);
}

TEST(AllocatorProcess, DetectsJemallocWithoutItsOptions) {
    ReplayAllocator allocator = named("jemalloc-tuned");
    allocator.variables.clear();
    EXPECT_NE(why_unavailable(allocator), "");
}

TEST(AllocatorProcess, OptionsReachThePool) {
    EXPECT_EQ(why_unavailable(named("pool", {"max_allocation=1KiB"})), "");
    expect_refusal(named("pool", {"max_allocation=1MiB"}), 2 << 20,
                   "it refused a request of 2097152 bytes");
    expect_refusal(named("pool:max_capacity=8MiB"), 16 << 20, "it refused a request");
}

TEST(AllocatorProcess, ReportsInvalidOptionsOfThePool) {
    try {
        why_unavailable(named("pool", {"huge_pages=purple"}));
        FAIL();
    } catch (const CommandError& error) {
        EXPECT_EQ(error.code(), wrong_usage);
        EXPECT_NE(std::string(error.what()).find("never, buckets, auto or always"),
                  std::string::npos)
            << error.what();
    }
}

TEST(AllocatorProcess, DoesNotPassOnTuningVariables) {
    setenv("TENSORPOOL_MAX_ALLOCATION", "1KiB", 1);
    MadeRecording made(1);
    made.allocate(0, 64, 1 << 20);
    const Descriptor plan = file_of(compile(made.get(), 0, Offsets::no));
    EXPECT_EQ(run_allocator(named("pool"), Touch::first, plan.number()).allocations, 1u);
    unsetenv("TENSORPOOL_MAX_ALLOCATION");
}

}  // namespace
}  // namespace tensorpool::command::replay
